// By serve.js: what the page's program says beside each answer.
const program = (0, eval)(
  `(() => {${source}; return { answer, waysToPayLess, rowsOfWays, absentWays, absentWords, otherAnswers, addingUp, answerWords, replicaWith, engineerWords, logOf, measureOf, laterWords, cheapestWords, keepsWords, wayWords, stepsOf, nearTieWords, loadName, upToWords, fromWords, everyStep, gridOfLoads,
    requestWords, aboutWords, asMarkdown, asCsv, everyQuantity, stepOf, DERIVED_ROOTS, EXPLAINED, firstByParts, deathsOf, QuestionError }})()`,
);

const other = (question) => ({ model: "8b", weights: "recommended", record: program.answer({ ...question, model: "8b" }) });

// The ends of a step as the page says them: up to which amount, and from which the next.
function stepEnds(found) {
  const { upTo, next } = program.stepsOf(found),
    kind = program.loadName(found.question);
  return [upTo === null ? null : program.upToWords(kind, upTo), next && program.fromWords(kind, next.amount)];
}

function beside(question) {
  try {
    const found = program.answer(question);
    if (!found.chosen) return null;
    const ways = program.rowsOfWays(found, program.waysToPayLess(found)),
      valueOf = program.everyQuantity(found),
      others = program.otherAnswers(found);
    return {
      others: others.map(({ question: _, ...one }) => one),
      absent_words: program.absentWords(found, ways),
      replicas: program.engineerWords(found).replicas,
      absent: [...program.absentWays(found, ways)],
      words: { ...program.answerWords(found), ...program.laterWords(found), cheapest: program.cheapestWords(found, ways) },
      way_words: ways.map((way) => ({ kind: way.kind, chance: way.chance ?? null, keeps: program.keepsWords(way, found), ...program.wayWords(way, found) })),
      memory_words: program.answerWords(found).memory.map(({ words }) => words),
      served: found.chosenGrid.values("served_at_target", ["chosen"])[0],
      replicas_held: found.replicas_held,
      month: found.monthly_usd,
      limit: found.limit,
      start: program.engineerWords(found).start,
      log: program.logOf(found),
      measure: program.measureOf(found),
      steps: program.stepsOf(found),
      near_tie: program.nearTieWords(found),
      step_ends: stepEnds(found),
      every_step: program.everyStep(found),
      loads: program.gridOfLoads(found.solved).map((row) => ({ ...row, rented: row.rented.map((one) => one?.monthly_usd ?? null) })),
      request: program.requestWords(found),
      markdown: program.asMarkdown(found, ways, "https://a.example/#x", [other(question)], others),
      csv: program.asCsv(found, ways, "https://a.example/#x", [other(question)], others),
      about: program.aboutWords(found, ways),
      parts_of_time: program.firstByParts(valueOf),
      ttft_seconds: found.ttft_seconds,
      deaths: program.deathsOf(found),
      derived: program.DERIVED_ROOTS.map((name) => program.stepOf(name, valueOf)),
    };
  } catch (error) {
    if (!(error instanceof program.QuestionError)) throw error;
    return null;
  }
}

module.exports = (questions) => questions.map(beside);
