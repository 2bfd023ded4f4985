// Facts that sheetgen/live/packed.py made short, in full: by name of a form what its parts stand for.
const FORMS = {
  $rows: ([names, columns]) => columns[0].map((_, i) => Object.fromEntries(names.map((name, k) => [name, columns[k][i]]))),
  $table: (columns) => columns[0].map((_, i) => columns.map((column) => column[i])),
  $words: ([values, places]) => places.map((place) => values[place]),
  $most: ([n, usual, places, others]) => {
    const values = Array(n).fill(usual);
    places.forEach((place, i) => (values[place] = others[i]));
    return values;
  },
  $runs: (parts) =>
    parts.flatMap((first, i) => (i % 2 ? [] : Array.from({ length: parts[i + 1] }, (_, k) => first + k))),
};

function unpacked(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(unpacked);
  const parts = Object.entries(value).map(([name, part]) => [name, unpacked(part)]);
  const [form] = Object.keys(value);
  return form?.startsWith("$") ? FORMS[form](parts[0][1]) : Object.fromEntries(parts);
}
