"""Runs in a Python that has `uno`, and needs nothing else: soffice, profile, and a JSON file of jobs, each with a file
to open (source), its steps, a file to save (target), and whether all is calculated anew (all), or only what the edits
touch, as it is under a person's hands (touched)."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path


def main(soffice, profile, jobs):  # type: ignore[no-untyped-def]
    import uno
    from com.sun.star.beans import PropertyValue  # type: ignore[import-not-found]

    pipe = "sheetgen" + "".join(c for c in Path(profile).as_posix() if c.isalnum())[-60:]
    office = subprocess.Popen(
        [
            soffice,
            f"-env:UserInstallation={Path(profile).absolute().as_uri()}",
            "--headless",
            "--norestore",
            f"--accept=pipe,name={pipe};urp;StarOffice.ComponentContext",
        ]
    )
    try:
        local = uno.getComponentContext()
        resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
        for _ in range(300):
            try:
                context = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
                break
            except Exception:
                time.sleep(0.2)
        desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
        hidden, form = PropertyValue(), PropertyValue()
        hidden.Name, hidden.Value = "Hidden", True
        form.Name, form.Value = "FilterName", "Calc MS Excel 2007 XML"
        for job in json.loads(Path(jobs).read_text()):
            book = desktop.loadComponentFromURL(Path(job["source"]).absolute().as_uri(), "_blank", 0, (hidden,))
            for step in job["steps"]:
                edit(book, *step)  # type: ignore[no-untyped-call]
            if job["calculate"] == "all":
                book.calculateAll()
            book.storeToURL(Path(job["target"]).absolute().as_uri(), (form,))
            book.close(True)
        with contextlib.suppress(Exception):  # the bridge falls with the office
            desktop.terminate()
        office.wait(timeout=30)
    finally:
        office.kill()


def edit(book, action, name, *rest):  # type: ignore[no-untyped-def]
    sheet = book.Sheets.getByName(name)
    sheet.unprotect("")
    if action == "insert":
        sheet.Rows.insertByIndex(int(rest[0]) - 1, int(rest[1]))
    elif action == "columns":
        sheet.Columns.insertByIndex(int(rest[0]) - 1, int(rest[1]))
    elif action == "delete":
        sheet.Rows.removeByIndex(int(rest[0]) - 1, int(rest[1]))
    elif action == "rename":
        sheet.Name = rest[0]
    elif action == "remove":
        book.Sheets.removeByName(name)
    elif action == "copy":
        book.Sheets.copyByName(name, rest[0], 0)
    elif action == "number":
        sheet.getCellRangeByName(rest[0]).Value = float(rest[1])
    elif action == "clear":
        sheet.getCellRangeByName(rest[0]).clearContents(1 | 2 | 4 | 16)  # numbers, dates, texts, formulas
    elif action == "text":
        sheet.getCellRangeByName(rest[0]).String = rest[1]
    elif action == "formula":
        sheet.getCellRangeByName(rest[0]).Formula = rest[1]
    else:
        raise ValueError(action)


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[no-untyped-call]
