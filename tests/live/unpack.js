// node unpack.js source.js values.json: what the page reads of values that were packed.
const fs = require("fs");
const [source, given] = [2, 3].map((i) => fs.readFileSync(process.argv[i], "utf8"));
const { unpacked } = (0, eval)(`(() => {${source}; return { unpacked }})()`);

console.log(JSON.stringify(unpacked(JSON.parse(given))));
