// By serve.js: what the page reads of values that were packed.
const { unpacked } = (0, eval)(`(() => {${source}; return { unpacked }})()`);

module.exports = unpacked;
