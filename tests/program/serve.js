// node serve.js SCRIPT: reads lines of JSON. The first is the JavaScript that the script finds as `source`; each of the
// others is what the function that it exports is called with, and is answered with a line of what this returns.
let answer = null;

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const given = JSON.parse(line);
  if (answer) return console.log(JSON.stringify(answer(given)));
  globalThis.source = given;
  answer = require(process.argv[2]);
});
