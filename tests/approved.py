"""The approved outputs, tests/approved/: what sheetgen tells its readers, as plain text.

python tests/approved.py     writes them anew, and with them the outputs in docs/ and docs/reference/

A change of wording shows here and in no other test, and its author reads it in the diff. A test of a number, or of a
rule, asserts a key of the record.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir
from html.parser import HTMLParser
from pathlib import Path

import docs_pages
import reference_pages
from plan_books import without_levers
from workbook_cells import cells

from sheetgen.api import answered
from sheetgen.catalog import Catalog
from sheetgen.launch.recommended import with_launch_rows
from sheetgen.live.live_facts import facts_of_catalog
from sheetgen.live.live_page import write_live
from sheetgen.mail.message import Changes, Letter, Money, bodies
from sheetgen.plan.findings import findings
from sheetgen.plan.pages import plan_page
from sheetgen.plan.read_plan import read_plan
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.question.sheet_question import ask
from sheetgen.report.build_page import build_page
from sheetgen.report.page import Page
from sheetgen.writers.formats import Options, templates_folder
from sheetgen.writers.html import render_html

TESTS = Path(__file__).parent
FOLDER = TESTS / "approved"
RENEW = "python tests/approved.py"
LOGS = TESTS / "diagnose" / "logs"
P5 = "--instances aws/p5.48xlarge,aws/p5en.48xlarge,aws/g6e.12xlarge,gcp/a3-highgpu-8g --as-of 2026-11-20"
LOAD = "--model 70b --context 16k --concurrent-requests 32"

# The files that the commands below read, beside those of examples/.
FILES: Mapping[str, str] = {
    "aws.csv": "region,instance_type,on_demand_usd_hr,accelerator_count,accelerator_name\n"
    "us-east-1,p5.48xlarge,60,8,h100\nus-east-1,g6.xlarge,0.8048,1,l4\n",
    "dear.csv": "region,instance_type,on_demand_usd_hr,accelerator_count,accelerator_name\n"
    "us-east-1,p5.48xlarge,0.06,8,h100\n",
    "broken.csv": "region,instance_type,on_demand_usd_hr,accelerator_count,accelerator_name\n"
    "us-east-1,p5.48xlarge,abc,8,h100\nus-east-1,p5.48xlarge,60,8,h100\nUS-EAST-1,P5.48xlarge,61,8,h100\n",
    "batch.csv": "model,gpu,context\n8b,h100,4k\nno-such-model,h100,4k\n8b,h100,4k,lost\n",
    "broken/models/a.yaml": "id: a\nnome: A\n",
    "broken/models/more.yml": "id: b\n",
    "broken.yaml": "plan: {start: 2027-Q1, quarters: 2}\nservices:\n"
    "  - {id: chat, demand: {users: 10, at_once: 2}, modell: 8b}\n",
    "old.yaml": "plan: {name: Serving plan, start: 2027-Q1, quarters: 2, as_of: 2026-11-26, approver: Jane Doe}\n"
    "budget: {2027-Q1: 1000}\nservices:\n"
    "  - {id: chat, owner: cx, demand: {at_once: 100}, model: 8b, growth: 0.1}\n"
    "  - {id: rag, owner: search, demand: {at_once: 40}, model: 70b}\n",
    "new.yaml": "plan: {name: Serving plan, start: 2027-Q1, quarters: 2, as_of: 2026-11-27, approver: Jane Doe}\n"
    "budget: {2027-Q1: 200000}\npolicy: {redundancy: {survive: machine}, headroom_fraction: 0.1}\nservices:\n"
    "  - {id: chat, owner: cx, demand: {at_once: 400}, model: 8b, growth: 0.1}\n"
    "  - {id: rag, owner: search, demand: {at_once: 40}, model: 70b}\n",
    "empty.log": "",
}
REQUEST: Mapping[str, object] = {"ask": "70b", "owner": "Platform", "approver": "Jane Doe", "headline": "rag:32"}
LOGS_OF_EACH_KIND = ("001", "010", "016", "021", "028", "029", "033", "040", "046", "065", "071", "076")
TERMINAL = (
    f"recommend {LOAD} {P5}",
    f"recommend --model 70b --users 200 {P5} --details --all",
    f"recommend --model 70b --requests-per-second 4.5 {P5} --details",
    "recommend --model 405b --users 640 --context 128k --instances aws/g6e.12xlarge --as-of 2026-11-20 --details",
    f"recommend {LOAD} {P5} --purchase reserved-3yr --discount-fraction 0.2 --contingency-fraction 0.1 --currency EUR "
    "--fx-rate 0.92 --fx-date 2026-11-19",
    f"recommend {LOAD} {P5} --purchase spot",
    f"recommend {LOAD} {P5} --ttft-ms 300",
    f"recommend --model 70b --budget-usd 50000 {P5}",
    f"recommend --model 70b --have h100:16 {P5}",
    f"recommend {LOAD} {P5} --disaggregated",
    "recommend --model 70b --users 200 --measured gpu=h100,tp=4,concurrent_requests=32,input_tokens=15k,"
    f"output_tokens=1k,tpot_ms=36 {P5}",
    f"{LOAD.replace('--model', 'size --model')} --tensor-parallel-size 4",
    f"{LOAD.replace('--model', 'size --model')}",
    "size --model 8b --requests-per-second 1000 --context 4k",
    "size --model 8b --gpu t4 --context 4k --flags vllm,sglang --kv-offload-gib 100",
    "size --model 70b --tensor-parallel-size 2 --context 4k --concurrent-requests 8 --flags all",
    "size --model gemma-4-e4b --gpu spark --context 8k --concurrent-requests 8 --measured examples/result.json",
    "size --from-log examples/startup.log --gpu t4",
    "size --batch batch.csv --out sized.csv",
    "explain kv_bytes_per_token --model 70b",
    "build --models 8b --workloads rag --tiers 32 --format json,csv --name first " + P5,
    "build --models 8b --workloads rag --tiers 64 --discount-fraction 0.2 --format json --name second " + P5,
    "diff output/first.json output/second.json",
    "pull examples/edited-sheet.xlsx --format json",
    "diff examples/edited-sheet.xlsx output/first.json",
    "catalog prices aws.csv --as-of 2026-11-20",
    "catalog prices aws.csv --as-of 2026-11-20 --to mine",
    "catalog prices dear.csv --as-of 2026-11-20",
    "catalog import examples/my-model/config.json --to mine",
    "check mine",
    "plan init --out started",
    "plan check old.yaml",
)
ERRORS = (
    "size --model 70bb",
    "size --model 8b --gpu h1000",
    "size --model 8b --context 4k --output-tokens 8k",
    "size --model 8b --tensor-parallel-size 7",
    "size --model 8b --concurrent-requests 2.5",
    "size --model 8b --context inf",
    "size --model 8b --from-log examples/startup.log --requests-per-second 2",
    "size --model 8b --speed-factor 2 --measured examples/result.json",
    "size --model 8b --measured tests/none.json,gpu=h100",
    "recommend --model 70b --users 10 --region us-est-1",
    "recommend --model 70b --users 10 --vendors nvida",
    "recommend --model 70b --users 10 --engine tensorrt-llm --gpus mi300x",
    "recommend --model 70b --users 10 --currency EUR",
    "recommend --model 70b --users 10 --discount-fraction 1.5",
    "recommend --model 70b --users 10 --concurrent-requests 5",
    "recommend --model 70b --budget-usd 1000 --users 5",
    "recommend --model 70b --have h100",
    "build --models 8b --attach --format xlsx",
    "build --models 8b --format docx",
    "build --models 8b,70b --ask 405b",
    "build --models 8b --as-of 20.11.2026",
    "build --models 8b --workloads rag=100 --format json",
    "explain kv_byte --model 70b",
    "show nothing-of-this-name",
    "check broken",
    "catalog prices none.csv",
    "catalog prices aws.csv",
    "catalog prices broken.csv --as-of 2026-11-20 --to mine",
    "catalog prices dear.csv --as-of 2026-11-20 --to mine",
    "catalog import examples --to mine",
    "pull none.xlsx",
    "pull examples/edited-sheet.xlsx --models 8b",
    "diff output/none.json output/none.json",
    "plan broken.yaml",
    "plan old.yaml --format png",
    "plan old.yaml --since examples/result.json",
    "diagnose empty.log",
    "diagnose none.log",
    "mail --to acme.com --models 8b",
    "mail --to vp@acme.com --models 8b --smtp a@b --dry-run",
)


def printed(lines: Iterable[str]) -> str:
    """The commands, each with what it prints on either stream."""
    return "\n".join(_printed(line) for line in lines)


def _printed(line: str) -> str:
    result = docs_pages.invoke(shlex.split(line))
    status = f"exit {result.exit_code}\n" if result.exit_code else ""
    return f"$ sheetgen {line}\n{result.output}{status}"


class _Words(HTMLParser):
    """The text of an HTML document: a line for each block and row, ` | ` between cells, pictures by their titles."""

    BLOCKS = frozenset(
        (
            "p",
            "div",
            "tr",
            "h1",
            "h2",
            "h3",
            "li",
            "pre",
            "title",
            "section",
            "table",
            "summary",
            "label",
            "option",
            "button",
        )
    )
    UNREAD = frozenset(("style", "script", "svg"))

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.unread = 0
        self.in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.unread += tag in self.UNREAD
        self.in_title = tag == "title"
        self.parts.append("\n" if tag in self.BLOCKS else " | " if tag in ("td", "th") else "")
        self.parts += [f"\n{value}\n" for name, value in attrs if name in ("placeholder", "aria-label") and value]

    def handle_endtag(self, tag: str) -> None:
        self.unread -= tag in self.UNREAD
        self.in_title = False
        self.parts.append("\n" if tag in self.BLOCKS else "")

    def handle_data(self, data: str) -> None:
        if not self.unread or self.in_title:
            self.parts.append(data)


def words_of(html: str) -> str:
    """The lines of an HTML document that a person reads."""
    parser = _Words()
    parser.feed(html)
    lines = (re.sub(r"\s+", " ", line).strip(" |") for line in "".join(parser.parts).split("\n"))
    return "\n".join(filter(None, lines)) + "\n"


def page() -> str:
    """The printed pages: request, sheet and page for engineers of one model, of several, of one that nothing serves."""
    asked = (
        ("70b", "chat,rag", REQUEST),
        ("8b,70b,405b", "chat,rag", {"together": "yes"}),
        ("405b", "rag", {"tpot_ms": "5"}),
    )
    drawn = (_page(models, workloads, **more) for models, workloads, more in asked)
    return "\n".join(words_of(render_html(shown, templates=templates_folder())) for shown in drawn)


def _page(models: str, workloads: str, **more: object) -> Page:
    """The page of a sheet of few instances."""
    instances = "aws/p5.48xlarge,aws/g6e.12xlarge,gcp/a3-highgpu-8g"
    asked = {
        "models": models,
        "workloads": workloads,
        "tiers": "32,1024",
        "as_of": "2026-11-20",
        "instances": instances,
    }
    catalog = Catalog()
    answer = answered(ask(catalog, {**asked, **more}))
    return with_launch_rows(build_page(answer.record, answer.question), answer.record, answer.question, {}, catalog)


def workbook() -> str:
    """The texts of the visible sheets, each once."""
    options = "build --models 70b --workloads rag --tiers 32,200 --ask 70b --format xlsx --name book " + P5
    docs_pages.invoke(shlex.split(options))
    texts: dict[str, dict[str, None]] = {sheet: {} for sheet in VISIBLE}
    for cell in cells(Path("output/book.xlsx")):
        if cell.sheet in texts and isinstance(cell.value, str) and " " in cell.value:
            texts[cell.sheet][cell.value.strip()] = None
    return "\n".join("\n".join((f"# {sheet}", *of_sheet)) + "\n" for sheet, of_sheet in texts.items())


VISIBLE = ("Sizing sheet", "Decision", "Inputs", "Money", "Prices and hardware", "Sources and checks")


def mail() -> str:
    """The messages with a sheet, with a sheet that has changed, and with a plan: subject, text and HTML."""
    single, several = (_page(models, "rag", **more) for models, more in (("70b", REQUEST), ("8b,70b,405b", {})))
    changes = Changes(
        "last.xlsx", (Money("Llama 3.1 70B", "$40,179", "$80,358", "load +$40,179"),), ("rag: 32 -> 64",), 2
    )
    plan = plan_page(findings(solved_plan(read_plan(Path("new.yaml"), Catalog()))))
    letters = (
        Letter(single, "sheet", attached=("pdf", "xlsx")),
        Letter(several, "sheet", changes, ("pdf", "xlsx")),
        Letter(plan, "plan", attached=("pdf", "docx")),
    )
    drafts = ((letter.subject(), *bodies(letter, templates_folder())) for letter in letters)
    return "\n".join(f"Subject: {subject}\n\n{text}\nHTML:\n{words_of(html)}" for subject, text, html in drafts)


def live() -> str:
    """The page that answers in the browser: its own texts, then those beside two answers."""
    from live_questions import program_of
    from node import run

    page_facts = facts_of_catalog(Catalog(), ("8b", "70b"), "2026-08-01")
    instances = {"providers": ["aws"], "input_tokens": 15_360, "output_tokens": 1024}
    questions = [{"model": "70b", "users": 320, **instances}, {"model": "70b", "concurrent_requests": 32, **instances}]
    beside = run(TESTS / "live" / "answer_beside.js", program_of(page_facts), questions)
    texts = "\n".join(text for answer in beside for text in _texts(answer))
    return f"{words_of(write_live(page_facts, Options()).decode())}\n{texts}\n"


def _texts(value: object, name: str = "") -> Iterator[str]:
    """The texts of a JSON value that have a space, each after its key; but for the formulas."""
    if isinstance(value, str):
        yield from (f"{name}: {line}" for line in value.splitlines() if " " in line.strip())
    elif isinstance(value, dict):
        for key, part in value.items():
            if key != "derived":
                yield from _texts(part, key)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, name)


def plan() -> str:
    """The document of a plan compared with the last one, as Markdown."""
    with without_levers():
        docs_pages.invoke(["plan", "old.yaml", "--format", "json", "--name", "old"])
    docs_pages.invoke(["plan", "new.yaml", "--since", "output/old.json", "--format", "md", "--name", "new"])
    return Path("output/new.md").read_text("utf-8")


def diagnoses() -> str:
    """The text of `diagnose` for a log of each kind of cause, and of a healthy server."""
    return printed(f"diagnose {number}.log" for number in LOGS_OF_EACH_KIND)


OUTPUTS: Mapping[str, Callable[[], str]] = {
    "page.txt": page,
    "workbook.txt": workbook,
    "mail.txt": mail,
    "live.txt": live,
    "terminal.txt": lambda: printed(TERMINAL),
    "plan.md": plan,
    "diagnose.txt": diagnoses,
    "errors.txt": lambda: printed(ERRORS),
}


def output(name: str) -> str:
    """One approved output as it is today, without what an entry more in the catalogs changes. It is made in an empty
    folder with the files of examples/ and FILES."""
    with tempfile.TemporaryDirectory() as folder, chdir(docs_pages.set_up(Path(folder))):
        for file, text in FILES.items():
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(text, encoding="utf-8")
        for number in LOGS_OF_EACH_KIND:
            shutil.copy(LOGS / f"{number}.log", f"{number}.log")
        return docs_pages.without_fingerprints(OUTPUTS[name]())


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or OUTPUTS:
        (FOLDER / name).write_text(output(name), encoding="utf-8")
    if not sys.argv[1:]:
        reference_pages.write()
        docs_pages.write()


if __name__ == "__main__":
    sys.path += [str(TESTS / room) for room in ("live", "program")]  # which pytest has
    main()
