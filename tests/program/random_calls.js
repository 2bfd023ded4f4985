// By serve.js: which of the given calls give another value than Python's.
const TOLERANCE = 1e-12;

const fromJson = (x) => {
  if (Array.isArray(x)) return x.map(fromJson);
  if (x === null || typeof x !== "object") return x;
  return x.infinite ? x.infinite * Infinity : NaN;
};

function isSame(got, want) {
  if (typeof want === "string") return got === want;
  const [x, y] = [Number(got), Number(want)];
  if (typeof got === "string") return false;
  return Object.is(x, y) || x === y || (isFinite(y) && Math.abs(x - y) <= TOLERANCE * Math.abs(y));
}

const evaluate = (text) => (0, eval)(`(() => {${text}; return FUNCTIONS})()`);

function wrongCalls(calls, text, most) {
  const functions = evaluate(text), wrong = [];
  for (const [place, values, want] of calls) {
    const got = functions[place].value(...fromJson(values));
    if (!isSame(got, fromJson(want))) wrong.push([place, values, want, String(got)]);
    if (wrong.length >= most) break;
  }
  return wrong;
}

module.exports = ({ calls, faults }) => {
  const wrong = wrongCalls(calls, source, 100);
  if (!faults) return wrong;
  if (wrong.length) throw new Error(`wrong without a fault: ${JSON.stringify(wrong[0])}`);
  // Each fault: where in the source, what stands there, and what is put in its place.
  return faults.map(([at, old, other]) => {
    if (source.slice(at, at + old.length) !== old) throw new Error(`no ${old} at ${at}`);
    try {
      return wrongCalls(calls, source.slice(0, at) + other + source.slice(at + old.length), 1).length > 0;
    } catch (error) {
      return true;
    }
  });
};
