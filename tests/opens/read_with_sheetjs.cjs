// Prints what SheetJS reads of the workbook named first: sheets, cells as [value, formula], comments, defined names.
const { readFile } = require("xlsx");

const book = readFile(process.argv[2], { cellFormula: true, cellNF: true, sheetStubs: false });
const cells = {}, n_comments = {};
for (const [sheet, content] of Object.entries(book.Sheets)) {
  cells[sheet] = {};
  n_comments[sheet] = 0;
  for (const [place, cell] of Object.entries(content)) {
    if (place.startsWith("!")) continue;
    if (cell.c) n_comments[sheet] += 1;
    if (cell.v !== undefined || cell.f) cells[sheet][place] = [cell.t === "e" ? { error: cell.w } : cell.v, cell.f ?? ""];
  }
}
const names = book.Workbook.Names.map(({ Name, Ref, Sheet }) => [Name, Ref, Sheet ?? null]);
process.stdout.write(JSON.stringify({ sheets: book.SheetNames, cells, n_comments, names }));
