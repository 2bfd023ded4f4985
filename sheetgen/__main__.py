"""`python -m sheetgen` is `sheetgen`."""

from sheetgen.cli import main

main(prog_name="sheetgen")
