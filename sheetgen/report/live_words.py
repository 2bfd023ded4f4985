"""The sentences of the live page: those of every answer, and its own."""

from __future__ import annotations

from collections.abc import Mapping

from sheetgen.errors import MEANT
from sheetgen.formula import Formula, both, is_text
from sheetgen.question.stated_load import TOGETHER
from sheetgen.report import approval, pay_less_words, sentences
from sheetgen.report.pay_less_words import WAYS
from sheetgen.report.templates import Template, first_of, q, template
from sheetgen.units import CAPACITY_BLOCK, ON_DEMAND, SPOT

NEAR = f"[near?{MEANT.format('{near}')}]"
DECLINED_REASONS = tuple(sentences.DECLINED_REASONS.items())
PARTS = {
    "weights": "weights",
    "kv": "KV cache",
    "other": "other",
    "free": "free",
    "outside": "not the engine's",
}  # of memory
AREAS = {
    "af": "Africa", "ap": "Asia Pacific", "ca": "Canada", "eu": "Europe", "me": "Middle East", "mx": "Mexico",
    "sa": "South America", "uk": "United Kingdom", "us": "US", "us-gov": "US government",
}  # fmt: skip
PARTS_OF_TIME = {
    "overhead": "overhead", "steps": "running steps", "prompt": "its own prompt", "behind": "behind other prompts",
    "queue": "waiting for memory",
}  # fmt: skip
BASES = {
    "measured": "measured here", "fitted": "fitted to runs on this GPU", "assumed": "assumed as on other GPUs",
    "engine": "fitted for the engine", "worked_out": "worked out",
}  # fmt: skip
SAME_AREAS = {"europe": "eu"}  # another name of an area
DEFAULT_AREA = "us"
UNKNOWN_CHECKPOINT = "A checkpoint in {dtype}: {unknown_checkpoint}."
# Names of ways to pay less that are not listed, beside the purchase classes.
ABSENT_NAMES = {
    "less_sure": "being less sure", "fp8_weights": "FP8 weights", "kv_fp8": "an FP8 KV cache",
    "four_bits": "4-bit weights", "hours": "working hours only", "provider": "another provider or vendor",
    "unbound": "on demand at another provider",
    "own": "owning", "hosted": "a hosted API",
}  # fmt: skip
ABSENT: Mapping[str, Template] = {
    "in_use": template("in use already"),
    "as_few": template("as few bits are in use already"),
    "at_even": template("the answer has an even chance"),
    "no_less": template("less than {least:percent} is saved"),
    "costs_more": template("it costs {month} a month, no less than the answer"),
    "surer": template("it saves nothing, but is {sure} for {month} a month: surer at no cost"),
    "no_less_sure": template("less than {least_sure:percent} is saved"),
    "not_clearly": template("nothing compared that is sold this way is {clearly:percent} cheaper; others can be named"),
    "not_held": template("nothing serves this so within the targets"),
    "no_price": template(
        "the catalog has no {area} price of this kind[named? at {providers}]", named=is_text(q.providers)
    ),
    "dearer": template(
        "the catalog has no {area} price of this kind for {machine}; the cheapest with one is {rent}, {month} a month"
    ),
    "no_other": template("rents the same as another way"),
    "no_checkpoint": template("the catalog has no such checkpoint"),
    "no_purchase_price": template(
        "the catalog has no purchase price of {gpu}[other?; of {other_gpu}, which a {term} commitment rents, it has "
        "one: ask with that commitment]",
        other=is_text(q.other_gpu),
    ),
    "no_host": template("no host with a fresh price is known"),
}
CHANGED_BY = {"fp8_weights": "FP8 weights", "kv_fp8": "FP8 KV cache", "four_bits": "4-bit weights"}  # by way
SENTENCES: Mapping[str, Template | Formula] = {
    "sure": sentences.sure,
    "rent": sentences.rent.saying(n_instances="{n_instances:grouped}"),
    "hardware_words": sentences.hardware_words,
    "measure_stakes": sentences.measure_stakes,
    **{f"measure_{name}": sentence for name, sentence in sentences.MEASURE_FIRST.items()},
    **{f"way_{kind}": way.what for kind, way in WAYS.items()},
    # A number of months comes as it is shown.
    **{f"gives_up_{kind}": way.gives_up.saying(pays_after_months="{months}") for kind, way in WAYS.items()},
    **{f"request_{name}": sentence for name, sentence in approval.SENTENCES.items()},
    "cheapest_same": pay_less_words.CHEAPEST_SAME,
    "rented": template("{rent}, {provider}"),
    "year": template(
        "{year} a year[bound?; the {term} commitment binds {binds}][cancelled?, cancel any day]"
        "[taken?; spot machines may be taken away at any time, which is not counted]"
        "[ahead?; a capacity block is paid ahead, for fixed days, and ends]",
        bound=is_text(q.term),
        cancelled=q.purchase == ON_DEMAND,
        taken=q.purchase == SPOT,
        ahead=q.purchase == CAPACITY_BLOCK,
    ),
    "declined": first_of(
        (q.reason == "unsold", "{term} was requested, and no machine is sold so: this is on demand."),
        *((q.reason == kind, f"{sentences.DECLINED}{reason}.") for kind, reason in DECLINED_REASONS[:-1]),
        otherwise=f"{sentences.DECLINED}{DECLINED_REASONS[-1][1]}.",
    ),
    "load": template(
        "[arriving?{per_hour} requests an hour at the peak[counted?, {share:percent} of a day's and {burst} times that "
        "in bursts]: |always ]{at_once}"
        "[many?, enough for at least {people} people who ask {times} times a day][arriving?|, as if every hour were "
        "that moment]",
        arriving=is_text(q.per_hour),
        counted=q.is_counted == 1,
        many=is_text(q.people),
    ),
    "known_asks": sentences.known_asks,
    "at_once": template(
        "{n} at once[average? on average; these machines hold {places:grouped} at once within the targets]",
        average=q.is_average == 1,
    ),
    "waits": sentences.waits,
    "same_moment": sentences.same_moment.saying(people="{people:grouped}", places="{places:grouped}"),
    "weights_gains": sentences.weights_gains,
    "certainty": template(
        "{sure}[usual?; on demand {usual}][elsewhere?; in the {area} {elsewhere}]",
        usual=is_text(q.usual),
        elsewhere=is_text(q.elsewhere),
    ),
    "fast_enough": template("{sure} to be fast enough"),
    "scale": template(
        "Asked {asked:percent}, the mark; {found}[more?; "
        "[held?{level} costs {month} a month on {rent}|nothing is {level}]].",
        more=is_text(q.level),
        held=is_text(q.month),
    ),
    "rounded_chance": sentences.rounded_chance,
    "paid_quality": template(
        f"[unknown?{UNKNOWN_CHECKPOINT} ][usual?{{dtype}} costs [as_usual?the same as {{usual}}|{{usual_usd}} "
        "[usual_saved?less|more] a month than {usual}], as recommended.|{weights_reason}][wide?| {dtype} is "
        "compressed and may answer slightly worse: compare.]",
        weights_reason=sentences.weights_reason,
        unknown=q.is_unknown == 1,
        unknown_checkpoint=sentences.unknown_checkpoint,
        wide=q.is_wide == 1,
        usual=is_text(q.usual),
        as_usual=q.is_as_usual == 1,
        usual_saved=q.is_usual_saved == 1,
    ),
    "fastest": template("Fastest: {changed}: {rent}, {provider}, {month} a month, {sure}."),
    "slower_tokens": template("{pace} ms a token, not {pace_now}"),
    "later_first_token": template("first word in {first}, not {first_now}"),
    "slower_and_later": template("{pace} ms a token, the first word in {first}"),
    "take_target": template("Answer with {changed}"),
    "commits": template(
        "[bound?{usd}[months? over {months} months][used?, used {years} years]|nothing]",
        bound=is_text(q.usd),
        months=q.months > 0,
        used=is_text(q.years),
    ),
    **{f"absent_{name}": reason for name, reason in ABSENT.items()},
    "absent": template("{names}: {reason}."),
    "absent_ways": template("Not listed, and why:"),
    "keeps": template(
        "[changed?{changed}: test it|[hosted?[known?{precision} weights|precision unknown]|same {weights}]]"
        "[hosted?, speed is theirs|[other?, [less?only ]{sure}|, as sure]]",
        changed=is_text(q.changed),
        hosted=q.is_hosted == 1,
        known=is_text(q.precision),
        other=is_text(q.sure),
        less=q.is_less == 1,
    ),
    "way_spot": template(pay_less_words.CLASSES[SPOT][0]),
    "gives_up_spot": template(pay_less_words.CLASSES[SPOT][1]),
    "type_first": template("Type a model first."),
    "compared_twice": template("{model} in {weights} is in the comparison."),
    "compared_full": template("At most {most} are compared: remove one first."),
    "sure_of": sentences.sure_of,
    "measure": template(
        "Measure first? [worth?Yes|No][impossible?, as nothing is {confidence:percent} sure to serve this]"
        "[one_each?, as each machine would have one request]: {usd} once, on {rent}; "
        "[certain?for certainty: ]{stakes}. {test}",
        worth=q.is_worth_it == 1,
        stakes=sentences.measure_stakes,
        certain=both(q.is_worth_it == 1, q.is_saving == 0),
        impossible=q.is_impossible == 1,
        one_each=q.is_one_each == 1,
    ),
    "least_sure": template("Least sure: {limit}[full? with {load}].", full=is_text(q.places), load=sentences.at_full),
    "wait": template(
        "[peak?At the peak: first|First] word on average {wait}", wait=sentences.wait, peak=q.is_peak == 1
    ),
    "wait_alone": template(
        "[peak?At the peak: answered|Answered] after {first} s[aimed? (target {first_target})].",
        peak=q.is_peak == 1,
        aimed=is_text(q.first_target),
    ),
    "longest": template(
        "Requests of up to {context} tokens, prompt and answer; longer ones are refused.[spare? Memory is counted for "
        "all of that, though these take {both}.][more? The model reads up to {limit}.]",
        spare=is_text(q.both),
        more=is_text(q.limit),
    ),
    "weights_of": template(
        "[known?Weights: {checkpoint}, [licensed?licence {license}|check its licence].|"
        f"[unknown?{UNKNOWN_CHECKPOINT}]]",
        known=is_text(q.checkpoint),
        licensed=is_text(q.license),
        unknown=q.is_unknown == 1,
        unknown_checkpoint=sentences.unknown_checkpoint,
    ),
    "memory": template(
        "Memory of [several?each of the {n_gpus:grouped} GPUs|the GPU]: {free} of {limit} GiB are free at the "
        "average load[spare? on the {n_needed:grouped} that are enough]",
        several=q.n_gpus > 1,
        spare=q.n_gpus > q.n_needed,
    ),
    "part": template("{part}, {gib} GiB[shared? ({percent:percent})]", shared=q.percent > 0),
    "hardware": template(
        "{hardware}[spare? ({needed:grouped} {needed:is|are} enough)], {weights} weights[placed?, {region}]"
        "[dated?, price of {day}[aged?, {age} days old]].",
        aged=is_text(q.age),
        placed=is_text(q.region),
        dated=is_text(q.day),
        spare=q.held > q.needed,
    ),
    "no_ways": template("None saves enough to be listed."),
    "other": pay_less_words.OTHER,
    "steps": template(
        "{month} a month carries [stepped?up to {up_to}|{most}] {unit}, at least {confidence:percent} sure"
        "[more?; the next step is {next}|"
        "[stepped?; nothing carries more at this confidence| and more]]",
        stepped=is_text(q.up_to),
        more=is_text(q.next),
    ),
    "next_step": template(
        "The next step, {rent}, is {sure} at {amount} {unit}, where it begins; the same machines are surer with less "
        "load, and less sure with more."
    ),
    "near_tie": template(
        "The cheapest that carries it, {rent}, is {month} a month, {sure}: it lost to these machines, as {rule}"
    ),
    "near_rule": template(
        "within {near:percent} of the cheapest, on no more GPUs, the fewest machines come first, then "
        "what computes in the weights' precision, then what serves most."
    ),
    "falls": template("A step can cost less than the one before: {rule}"),
    "area": template("{area}[default?, any region]", default=q.is_default == 1),
    "other_more_load": template(
        "Twice the {unit} ({load})[people?, or twice the questions a day]", people=q.is_people == 1
    ),
    "other_more_prompt": template("Twice the prompt ({prompt} tokens)"),
    "other_more_of_both": template("Twice the {unit} and the prompt"),
    "other_more_answer": template("Twice the answer ({answer} tokens)"),
    "other_less_answer": template("Half the answer ({answer} tokens)"),
    "other_less_load": template(
        "Half the {unit} ({load})[people?, or half the questions a day]", people=q.is_people == 1
    ),
    "other_less_prompt": template("Half the prompt ({prompt} tokens)"),
    "other_usual_asks": template("{times} questions a day from each, as known of enterprises"),
    "other_in_area": template("In [default?the ]{area}", default=q.is_default == 1),
    "other_same_moment": template("All {people} people at the same moment"),
    "other_difference": template("[other?{usd} [less?less|more]|the same]", other=is_text(q.usd), less=q.is_less == 1),
    "request_more": template("{what}: {month} a month."),
    "ask_this": template("Ask this"),
    "other_first": template("{first}[aimed? ({target})]", aimed=is_text(q.target)),
    "asked": template(
        "Asked: {model} in {weights}, prompts of {prompt} tokens, answers of {answer}[longer?, a context of {context}]"
        "[cached?, a KV cache in {kv}][repeated?, {times} a day from each person], at least {confidence:percent} sure; "
        "{purchase}, "
        "prices of [placed?{region}|each provider's US region][named? at {providers}].",
        longer=is_text(q.context),
        cached=is_text(q.kv),
        repeated=is_text(q.times),
        placed=is_text(q.region),
        named=is_text(q.providers),
    ),
    "given": template("{name} = {value}: given by the question, the engine or the catalogs."),
    "price_read": template("The list price of {rent}[dated?, of {day}]. Source: {source}.", dated=is_text(q.day)),
    "step": template(
        "{month} a month up to [last?at least ][rough?about ]{up_to} {unit}", last=q.is_last == 1, rough=q.is_rough == 1
    ),
    "month_at": template("{month} a month for {up_to} {unit}"),
    "no_step": template("nothing above [rough?about ]{above} {unit}", rough=q.is_rough == 1),
    "log": template(
        "The log should say, of the memory of one GPU: Available KV cache memory: {pool} GiB; GPU KV cache size: "
        "{tokens} tokens; Maximum concurrency for {context} tokens per request: {concurrency}x. {kept}"
    ),
    "pool_kept": template(
        "Of one GPU, [started?{pool} GiB as started for the requests admitted, which the log prints; {flags} GiB less, "
        "{derived} GiB, with the buffers of the engine's default of {default_seqs:grouped} requests, as is counted "
        "here|{derived} GiB, which the log prints][doubted?; {doubt} GiB of that are kept back for being "
        "{confidence:percent} sure of it]: {counted} GiB are counted on, which hold {held:grouped} requests"
        "[several? in all, {each:grouped} a replica].",
        started=is_text(q.pool),
        doubted=is_text(q.doubt),
        several=q.each < q.held,
    ),
    "replicas": template(
        "{n:grouped} {n:replica|replicas}[several?, each] on {gpus}[spare?, {needed:grouped} needed]: {at_once}; "
        "the memory that is counted on holds {held:grouped}.",
        several=q.n > 1,
        spare=q.n > q.needed,
    ),
    "start_times": template(
        "Start it {n:grouped} times, behind a load balancer that sends to the least busy: [many?{on_one:whole} on each "
        "of the {n_instances:grouped} "
        "machines|on one machine], each on its own GPUs and port.",
        many=q.n_instances > 1,
    ),
    "why_seqs": template(
        "--max-num-seqs {seqs:grouped}: the places of [ranked?each of the {dp:whole} ranks of ]a replica, the most "
        "requests at once within the targets; more would miss one of them.",
        ranked=q.dp > 1,
    ),
    "start_vllm": template(
        "vllm serve {checkpoint} --tensor-parallel-size {tp:whole}[ranked? --data-parallel-size {dp:whole}]"
        "[whole? --enable-expert-parallel] --max-model-len {max_model_len:whole} --max-num-seqs {seqs:whole} "
        "--max-num-batched-tokens {batched:whole} --gpu-memory-utilization {share} --kv-cache-dtype {cache} "
        "--enable-prefix-caching",
        ranked=q.dp > 1,
        whole=q.is_whole == 1,
    ),
    "no_command": template(
        "The start command of this deployment comes from the terminal: add --flags to the command below."
    ),
    "here_held": template("the log's pool holds {held:grouped} of {context} tokens, {seqs:grouped} are admitted"),
    "here_spike": template(
        "request {seqs:next} waits: {seqs:grouped} are admitted, the log's pool holds {held:grouped} of {context} "
        "tokens"
    ),
    "change_holds": template("[other?{held:grouped}, not {now:grouped}|{now:grouped} as now]", other=q.held != q.now),
    "change_replica": template("{seqs:grouped} more"),
    "change_machine": template("{usd} a month a machine"),
    "change_machines": template("{usd} a month in all"),
    "change_larger": template("machines with {gpus:grouped}× {gpu}, {rent}"),
    "change_graphs": template("fewer cudagraph_capture_sizes"),
    "change_request": template("a request takes {bytes} GiB, not {now}"),
    "change_weights": template("weights take {bytes} GiB, not {now}"),
    "change_more_pool": template("{bytes} GiB more for the pool"),
    "change_less_pool": template("{bytes} GiB stay free"),
    "change_freed": template("{bytes} GiB freed"),
    "change_freed_at_most": template("up to {bytes} GiB freed"),
    "change_offload": template("1 GiB of weights leaves it, for each 1"),
    "here_step": template("{batched:grouped} tokens a step: {activation} GiB a GPU"),
    "here_weights": template("{weights} of {limit} GiB a GPU"),
    "here_request": template("{context} tokens: {charge} of {pool} GiB a GPU"),
    "here_graphs": template("{graphs} GiB a GPU"),
    "here_sampler": template("{seqs:grouped} requests: {sampler} GiB a GPU"),
    "part_of_time": template("{part}, {seconds} s: {basis}"),
    "for_approval": template("For approval, {day}. {asked}"),
    "load_at_once": template("{n} {requests} at once"),
    "load_a_second": template("{rate} {requests} a second"),
    "hosted": template(
        "[any?The cheapest host first, for {prompts} million prompt tokens and {answers} million answer tokens a month"
        "[many?: {people} people who ask {times} times a day[full?, as many as {at_once} at once can serve]|[full?: "
        "always {at_once} at once]]; gives up {gives_up}.[priced? The machines above cost {usd} a million tokens, "
        "prompts and answers together.] Prices from {origin}, read on {day}; they are the same for every region.|"
        "No host of this model is known whose price is fresh and which reads prompts so long.]",
        any=is_text(q.gives_up),
        many=is_text(q.people),
        full=q.is_at_once == 1,
        priced=is_text(q.usd),
    ),
    "per_person": template(
        "{usd} a month for each of {people} people[enough? who ask {times} times a day, for whom this is enough].",
        enough=q.is_enough == 1,
    ),
    "host": template(
        "{host}: {month} a month; {prompt} in, {answer} out a million tokens; precision {precision}; {day}, {source}"
    ),
    "host_prompt": template("{usd}[shared?, {cached} cached]", shared=is_text(q.cached)),
    "host_precision": template(
        "[known?{precision}|unknown][retired?, until {until}]",
        known=is_text(q.precision),
        retired=is_text(q.until),
    ),
    "pages": template("{pages:grouped} {pages:page|pages}"),
    "a_page": template("A page is {tokens} tokens; counted are prompt and answer."),
    "copied": template(
        "Copied.[file? The link works on this device alone, as the page is a file: send the file too, and what "
        "follows # in the link.]",
        file=q.is_file == 1,
    ),
    "not_copied": template("This browser lets the page copy nothing here. The link is in the address bar."),
    "loads": template("The usual loads of {model}, $ a month"),
    "compared": template("{model}, {weights}"),
    "compare_facts": template("{rent}, {provider}[worded?; {sure}]", worded=is_text(q.sure)),
    "about": template(
        "Worked out in this page; nothing is sent. {engine} {version}.[priced? Prices compared: {lists}[committed? "
        "(commitments: {terms})][aged?, the oldest {age} days old on {day}].] Not in them: {costs}. A month has "
        "{hours} hours.",
        committed=is_text(q.terms),
        priced=is_text(q.lists),
        aged=is_text(q.age),
    ),
    "price_list": template(
        "{provider}[placed? {regions}] [dated?of {oldest}[spread? to {newest}]|[rough?|without a date]]"
        "[rough?[dated? and ]of {rough}, without a day]",
        placed=is_text(q.regions),
        rough=is_text(q.rough),
        dated=is_text(q.oldest),
        spread=is_text(q.newest),
    ),
    "over": template("{model} reads at most {limit} tokens; prompt and answer are {context}."),
    "short": template(
        "The context is {context} tokens; prompt and answer are {both}.[usual? Give both, or a longer context.]",
        usual=q.is_usual == 1,
    ),
    "no_model": template(
        "[named?No model is called {name}.[near? Near it: {near}.]|Name a model.]",
        named=is_text(q.name),
        near=is_text(q.near),
    ),
    "not_one_model": template("Choose one model: {near}[more? or another].", more=q.more == 1),
    "wrong": template(f"{{label}} is {{value}}. Write {{kind}}.{NEAR}", near=is_text(q.near)),
    "a_share": template("{low:percent} to {high:percent}, such as 90% or 0.9"),
    "stale": template("This is the last valid answer."),
    "unanswered": template("Not answered: correct the address, or ask in the form."),
    "see_fields": template("Not valid, and why stands beside it: {fields}."),
    "nothing_taken": template("Nothing to copy or print until the question is valid."),
    "unknown": template(
        f"The address has {{name}}, which the page does not know.{NEAR} It knows {{names}}.", near=is_text(q.near)
    ),
    "together": template(TOGETHER),
    "twice": template("{name} is given twice. Keep one."),
    "nobody": template("No machine is left: choose other providers, another region or another way to pay."),
}
