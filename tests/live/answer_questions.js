// By serve.js: what the page's program answers, a record for each question.
const { answer, survivesMachine, waitsOf, replicasOfMachine, largerThan, measureOf, byPurchase, waysToPayLess, rowsOfWays, asSureWays, cheapestSame, hostsTold, asPublished, measureFirst, fastestOf, QuestionError } = (0, eval)(
  `(() => {${source}; return { answer, survivesMachine, waitsOf, replicasOfMachine, largerThan, measureOf, byPurchase, waysToPayLess, rowsOfWays, asSureWays, cheapestSame, hostsTold, asPublished, measureFirst, fastestOf, QuestionError }})()`,
);

function record(question) {
  const start = performance.now();
  try {
    const found = answer(question),
      first = performance.now() - start;
    const more = { pay_less: found.chosen ? waysToPayLess(found) : null, as_published: asPublished(found) };
    more.as_sure = found.chosen ? asSureWays(found, more.pay_less) : null;
    more.cheapest_same = found.chosen ? cheapestSame(found, rowsOfWays(found, more.pay_less)) : null;
    more.fastest = fastestOf(found);
    Object.assign(more, { measure_first: measureFirst(found), by_purchase: byPurchase(found.solved) });
    more.larger = null;
    if (found.chosen) {
      const larger = largerThan(found);
      Object.assign(more, { replicas_of_machine: replicasOfMachine(found), is_worth_it: measureOf(found)?.is_worth_it ?? null });
      if (larger) more.larger = { monthly_usd: larger.monthly_usd, instance: larger.machine[0] };
    }
    more.survives_machine = found.chosen ? survivesMachine(found) : null;
    more.waits = found.chosen ? waitsOf(found) : null;
    more.hosted = found.chosen ? hostsTold(found) : [];
    const { solved, question: _, units, chosen, ...plain } = { ...found, ...more };
    return { ...plain, milliseconds: [first, performance.now() - start] };
  } catch (error) {
    if (!(error instanceof QuestionError)) return { error: String(error.stack), milliseconds: [0, 0] };
    return { refused: error.message, milliseconds: [0, 0] };
  }
}

module.exports = (questions) => questions.map(record);
