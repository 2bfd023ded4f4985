"""The sentences of the sheet, each declared once: on the page they are filled, in a workbook they are formulas.

A quantity that is none is NaN in Python and "-" in a workbook, which is greater than every number: conditions ask first
whether a quantity is known.
"""

from __future__ import annotations

import functools
import operator

from sheetgen.answer.answer_record import not_in_price
from sheetgen.answer.solve import NOTHING_FITS, TOO_SLOW
from sheetgen.formula import (
    Expr,
    Value,
    both,
    either,
    is_blank,
    is_number,
    is_text,
    percent_text,
    ratio,
    replace_text,
    round_down,
    round_nearest,
    smallest,
    where,
)
from sheetgen.question.overrides import BY_READER
from sheetgen.report.templates import Case, Template, Unless, first_of, q, template
from sheetgen.sizing.rates import FEW_FRACTION
from sheetgen.units import listed

OK, CHECK = "OK", "CHECK"


sized_as = template(
    "{model} is sized as {entry}, whose architecture it [listed?has|is taken to have by its name].",
    listed=q.is_listed == 1,
)

not_in_the_price = template(
    f"Prices without [alone?{listed(not_in_price(0))}|{listed(not_in_price(1))}].",
    alone=q.survive == 0,
).formula("not_in_the_price", "Not in the price")

# Loads -------------------------------------------------------------------------------------------------------

load_words = template("{workload}, {concurrent_requests} at once").formula(
    "load_words", "Load in words", "A load in words: its workload, and the requests at once.", "the tiers on Inputs."
)
rate_or_load_words = template(
    "{workload}, [stated?{tier} at once|{per_hour:grouped} requests an hour]",
    stated=is_number(q.tier),
    per_hour=q.requests_per_second * q.seconds_in_an_hour,
).formula(
    "rate_or_load_words",
    "Load in words",
    "A load in words: its workload, and the requests at once or in an hour.",
    "the tiers on Inputs.",
)
at_once = template("{requests} {requests:request|requests} at once")
people = template("{users} {users:person|people}")
of_people = template("{users:grouped} {users:person's|people's} {name}")
finding = template(
    "[single?{model}, ]{load}: [served?[several?{low} to {high}|{low}] a month|nothing serves it]",
    single=is_text(q.model),
    served=is_text(q.low),
    several=is_text(q.high),
)
finding_together = template("{load} on every model, together: {usd} a month")
for_people = template("[most?up to|for] {users:grouped} {users:person|people}", most=q.is_most == 1)
hour_of_people = template(
    "Enough for at least {users:whole} {users:person|people} who ask {times} times a day: {per_hour:whole} requests an "
    "hour at the peak."
)
hour_of_rate = template("{per_hour:whole} requests an hour at the peak[served?: {at_once}].", served=is_text(q.at_once))
weights_of_group = template(
    "[several?{models} in ]{dtype}[published? by {publisher}, [licensed?licence {license}|check its licence]]",
    several=is_text(q.models),
    published=is_text(q.publisher),
    licensed=is_text(q.license),
)
reads_at_most = template("this model reads at most {limit} tokens")
ENTERPRISE_ASKS = 6  # questions a day of each
known_asks = template(
    f"Known: users of a consumer assistant ask 3 to 4 times, of an enterprise {ENTERPRISE_ASKS}, the top tenth 23."
)
# Of a model's machines that may prove enough and are not those rented: what a day on one costs, and their month.
day_elsewhere = template(
    "{usd} for {model} on {machine}[priced?, which may be enough, at {month} a month]", priced=is_text(q.month)
)
per_second = template("{rate} requests/s")
load_in_title = template(
    "[stated?{load:grouped} {name}{load:|s} at once|[people?{stated_users:grouped} {stated_users:person's|people's} "
    "{name}s|{load_words}]][odd?; {asked} is no whole number from 1]",
    stated=is_number(q.load),
    people=q.stated_users > 0,
    odd=q.asked != q.load,
)
finding_words = template(
    "{load_asked}: [served?[several?{low:usd} to {high:usd}|{low:usd}] a month|nothing serves it]",
    load_asked=load_in_title,
    served=q.high > 0,
    several=q.low < q.high,
).formula("finding_words", "What the load costs")
tier_words = template(
    "[stated?{tier:grouped} at once|[people?{stated_users:grouped} {stated_users:person|people}|at the {tier}]]",
    stated=is_number(q.tier),
    people=q.stated_users > 0,
).formula("tier_words", "Load of a column")
# Of a rate the cache is of the mean at the peak; replicas are planned with places to spare.
kv_head = template("[stated?KV|mean KV], {unit}", stated=is_number(q.tier))
decision_asks = template(
    "Here: every model, at the load below. Decision adds 90% sure, published weights and ways to pay less; it shows "
    "{other_title}"
).formula("decision_asks", "The question of Decision")
sheet_asks = template("Here: one model, at a load of its own. Sizing sheet: {other_title}").formula(
    "sheet_asks", "The question of the sizing sheet"
)
enough_for = template(
    "enough for {users:grouped} {users:person|people}", when=q.users >= 1, otherwise="enough for nobody"
).formula("enough_for", "People of a load")
people_of_answer = template(
    "for {users:grouped} {users:person|people}",
    when=both(is_number(q.n_instances), is_number(q.users), q.users >= 1),
    otherwise=None,
).formula("people_of_answer", "People of the answer")
# Where people and requests at once come from.
people_in_numbers = template(
    "{users:grouped} {users:person|people} × {requests_per_user_per_day} requests a day × {peak_hour_share:percent} in "
    "the busiest hour × {burst_factor} of burst = {per_hour:grouped} an hour: "
    "[typed?{concurrent_requests:digits} at once on average on the machines for {model}|"
    "{concurrent_requests:grouped} at once with places to spare, at {turn_seconds:whole} s each by the targets]",
    when=both(is_number(q.n_instances), is_number(q.users), q.users >= 1),
    otherwise=None,
    typed=q.stated_users > 0,
    turn_seconds=q.target_turn_seconds,
).formula("people_in_numbers", "People in numbers")
tokens_words = template("{context_words} tokens").formula("tokens_words", "Context of a row")
weights_of_band = template(
    "weights {bf16:tenths} {unit} in BF16, {fp8:tenths} in FP8, here in {weights_words}; KV cache {kv:tenths} "
    "{small_unit} a token in {kv_words}"
)
decision_model = template("Decision: {model}").formula("decision_model", "Model")

# Hardware ----------------------------------------------------------------------------------------------------

RENT = "{n_instances} × {instance:type}"
rent = template(RENT, when=is_number(q.n_instances), otherwise="{instance}")
# In a workbook, which has the type alone: of a type that is itself a count 2 × (1x B200 SXM6).
rent_of_type = template(
    "{n_instances} × [counted?({instance:type})|{instance:type}]",
    when=is_number(q.n_instances),
    otherwise="{instance}",
    counted=where(replace_text(q.instance, "x ", "") == q.instance, 0, 1) == 1,
)
rent_words = rent_of_type.formula("rent_words", "What to rent")
# Of a way to pay without an amount.
NOT_SOLD, NOT_ON_DEMAND, UNPRICED = "nothing sold so is as sure", "no price of these machines", "no price known"
rent_from = template(
    "{rent}, {provider_name}", when=is_number(q.hourly_usd), otherwise="{lacking}", rent=rent_of_type
).formula("rent_from", "What to rent, and where")
why_nothing = first_of(
    (Unless(q.within_limit == 1), "over the model's {limit_words}"),
    (q.n_held > 0, TOO_SLOW),
    otherwise=NOTHING_FITS,
).formula("why_nothing", "Why nothing")
FITS, NONE_FITS, OVER_LIMIT = FIT_WORDS = "fits", "none fits", "over limit"
fit_word = first_of(
    (Unless(q.within_limit == 1), OVER_LIMIT),
    (Unless(is_number(q.n_instances)), NONE_FITS),
    otherwise=FITS,
).formula("fit_word", "Fit", "fits, none fits, or over limit.", "the choice on Workings.")
# Beside the time to the first word of a prompt that is longer than any measured one.
BEYOND, is_beyond = "[beyond? (prompts this long unmeasured)]", q.is_beyond == 1
BEYOND_RUNS = where(is_number(q.input_tokens), where(q.input_tokens > q.longest_prompt_tokens, 1, 0), 0) == 1
word_beyond = template("First word: prompts this long unmeasured.")
word_beyond_runs = template(
    "{words}",
    when=BEYOND_RUNS,
    otherwise="First word: predicted; prompts of this length were measured.",
    words=word_beyond,
).formula("word_beyond_runs", "Longer than any measured prompt")
wait = template(
    "after {first} s[mean? on average, without waits][ranged? (could be {low} to {high})]"
    "[aimed? (target {first_target})], then {pace} tokens a second[paced? (target {pace_target})].",
    ranged=is_text(q.low),
    mean=q.is_mean == 1,
    aimed=is_text(q.first_target),
    paced=is_text(q.pace_target),
)
_WORD = template("[worded?first word|answer]", worded=q.output_tokens > 1)
waits = template(
    "Alone a request has its {word} after {alone} s, with every place taken after {full} s"
    "[worded?, then {pace} tokens a second][aimed?, {sure} to keep {first_target} s]"
    "[known?; these are times of requests that have a place: {share} of all find none and wait for one first"
    "[long?, {mean_wait} s longer on average], were all replicas as slow as full ones]"
    "[placed?; each has a place at every moment, and nobody waits for one].",
    word=_WORD,
    worded=q.output_tokens > 1,
    aimed=is_text(q.first_target),
    known=is_text(q.share),
    long=is_text(q.mean_wait),
    placed=q.is_placed == 1,
)
# How many people the answer's machines serve within the targets, the share that waits for a place then, and the month
# of one more; rent: of other machines at no higher cost.
enough_for_people = template(
    "{most:grouped} {most:person|people}; [served?{more:grouped} need {usd}[other? on "
    "{rent}]|nothing serves {more:grouped}]",
    served=is_text(q.usd),
    other=is_text(q.rent),
)
# limit: the share that may wait, where more do; of those the plan is by an approximation.
WAITERS, is_over = "{share}[over? ({limit} planned)]", is_text(q.limit)
late = template(f"{WAITERS} wait {{mean_wait}} s for a place first", over=is_over)
# First words at the confidence with every place taken, and the wait for a place before them; all_but_few: of 99 %,
# where more than one in a hundred waits.
_ALL_BUT_FEW = f"{1 - FEW_FRACTION:.0%} within"
slow = template(
    f"With every place taken [many?|{_ALL_BUT_FEW} ]{{full}} s ({{confidence:percent}} sure); "
    f"{WAITERS} queue first, {{mean_wait}} s on average[many?; {_ALL_BUT_FEW} {{all_but_few}} s].",
    over=is_over,
    many=is_text(q.all_but_few),
)
# Requests at once of a rate: the mean at its peak, and all that the chance is of, on a machine or on a replica that is
# several.
_EACH = "[several? a [spans?replica|machine]]"
_SEVERAL, _SPANS = q.n_loaded > 1, q.spans_machines == 1
at_once_of_rate = template(
    f"{{mean}} at once on average[filled?, up to {{places}}{_EACH}]",
    filled=is_text(q.places),
    several=_SEVERAL,
    spans=_SPANS,
)
at_full = template(f"{{places}} at once{_EACH}", several=_SEVERAL, spans=_SPANS)
# The targets that a chance is of, of one answer to a rate with its requests at once.
_AIMED, _PACED = is_text(q.first_target), is_text(q.pace_target)
kept = template(
    "[aimed?first words in {first_target} s][both? and ][paced?{pace_target} tokens a second][targeted? on average]"
    f"[filled?[targeted?,] with up to {{places}} at once{_EACH}]",
    targeted=either(_AIMED, _PACED),
    aimed=_AIMED,
    paced=_PACED,
    both=both(_AIMED, _PACED),
    filled=is_text(q.places),
    several=_SEVERAL,
    spans=_SPANS,
)
sure_of = template(
    "[single?{sure}|Sure] [targeted?of [short?memory for the load, ][single?{kept}|the targets]|"
    "to be [short?large and ]fast enough{kept}][tested?, tested on day one]"
    "[brief?|; assumes this load, no failures].",
    single=is_text(q.sure),
    short=q.is_short == 1,
    targeted=either(_AIMED, _PACED),
    kept=kept,
    tested=q.is_tested == 1,
    brief=q.is_brief == 1,
)
same_moment = template(
    "All {people:grouped} at the same moment: [waits?{places:grouped} are served at once, the others wait their turn, "
    "the last about {last} for its {word}|each has a place].",
    word=_WORD,
    waits=is_text(q.last),
)
# A chance is said no higher than it is: .88 is "85% sure", since "90% sure" is what the answer at 0.9 costs more for. A
# level worked out from itself may lie the last digits below (two decimals).
how_sure = first_of(
    (q.chance < q.chance_step, "under {chance_step:percent}"),
    (q.chance > 1 - q.chance_step, template("over {most:percent}", most=1 - q.chance_step)),
    otherwise=template(
        "{reached:percent}", reached=round_down(round_nearest(ratio(q.chance, q.chance_step), 2)) * q.chance_step
    ),
)
sure = template("{how_sure} sure", how_sure=how_sure)
# The same as it was worked out, to a tenth of a percent that it reaches, and how it is rounded.
worked_out = template(
    "{tenths:tenths}%",
    tenths=ratio(
        round_down(round_nearest(round_nearest(ratio(q.chance, q.chance_step), 2) * q.chance_step * 1000, 1)), 10
    ),
)
rounded_chance = template(
    "worked out {worked_out}, said as {how_sure}: in steps of {chance_step:percent}, rounded down",
    worked_out=worked_out,
    how_sure=how_sure,
)
chance_words = template("{how_sure}", when=is_number(q.n_instances), otherwise=None, how_sure=how_sure).formula(
    "chance_words", "Sure"
)
# The month's money that a measurement decides, beside today's answer: what passing saves, and what failing costs;
# level: what nothing is, "" where something is. Where passing saves nothing, a measurement buys certainty alone.
measure_stakes = template(
    "[moved?[falls?[alone?P|p]assing saves {less} a month, failing|[alone?F|f]ailing] [rises?means the margin"
    "[priced?, {more} more]|[nothing?leaves nothing {level}|costs no more]]|[alone?N|n]o money depends on it][alone?.]",
    alone=q.is_alone == 1,
    moved=either(is_text(q.less), is_text(q.more), q.is_dearer == 1, is_text(q.level)),
    falls=is_text(q.less),
    rises=either(is_text(q.more), q.is_dearer == 1),
    priced=is_text(q.more),
    nothing=is_text(q.level),
)
# A measurement: its load, the machines' share of it or all, of a rate then every place taken, and what passes.
# machines: how many of the answer's. places: of one machine, where that is the answer's. short: of memory, which a
# start shows.
measure_run = template(
    "A day[alone? on {machines}][rate?| at [shared?{part}|the full {whole:grouped}] {whole:request|requests} at once]"
    "[passes?: passes if [short?the start-up log shows that the load fits|averages meet targets[rate? with [placed?"
    "{places} at once|every place taken]]]]",
    alone=is_text(q.machines),
    placed=is_text(q.places),
    shared=is_text(q.part),
    rate=q.is_rate == 1,
    passes=either(q.is_short == 1, _AIMED, _PACED),
    short=q.is_short == 1,
)
# Why one should measure before renting, by the reasons of the record.
_DAY_PRICED, _IS_PRICED = "[priced?, a day for {day}]", is_text(q.day)
MEASURE_FIRST = {
    "impossible": template(
        "Measure first: nothing is {confidence:percent} sure to serve this; this is an even chance."
    ),
    "asked_dear": template(
        f"Measure first{_DAY_PRICED}: {{sure}} costs {{usd}} a month, on {{rent}}.", priced=_IS_PRICED
    ),
    "one_each": template(
        f"Measure first{_DAY_PRICED}: each machine would have one request; {{sure}} costs {{usd}} a month.",
        priced=_IS_PRICED,
    ),
    "sure_impossible": template("Measure first: nothing is 90% sure to serve this."),
    "sure_dear": template("Measure first: being 90% sure costs {usd} a month."),
}
# Of machines that may be taken away or may not be free, in a recommendation and in a plan.
SPOT_TAKEN = "spot can be taken away any time; that is not counted"
BLOCK_ENDS = "a capacity block ends on its day, and the next is other machines and not promised"
ASK_CAPACITY = "ask for capacity: {machines} at once"
GPUS = "{n_gpus}× {gpu_name}"
gpus = template(GPUS)
gpus_at = template(GPUS + ", {provider_name}", when=is_number(q.n_instances), otherwise=None).formula(
    "gpus_at", "GPUs to rent, and where"
)
owned_words = template("{n_owned_gpus}× {gpu_name}", when=is_number(q.n_owned_gpus), otherwise=None).formula(
    "owned_words", "GPUs to own"
)
hardware_words = template(
    GPUS + ", TP {tensor_parallel_size}[stages?, PP {pipeline_stages}][ranks?, DP {data_parallel_size}], "
    "{n_replicas} {n_replicas:replica|replicas}",
    when=is_number(q.n_instances),
    otherwise=None,
    stages=q.pipeline_stages > 1,
    ranks=q.data_parallel_size != 1,
).formula(
    "hardware_words",
    "Hardware in words",
    "GPUs, parallel sizes and replicas of the recommended hardware.",
    "the choice on Workings.",
)
share = template(
    "[least?under 1%|{fraction:percent}]", least=percent_text(q.fraction) == "0%"
)  # of what is not the same

# Of a class that was requested and is no answer ----------------------------------------------------------------------

DECLINED = "{term} was requested and is no answer: "
DECLINED_REASONS = {
    "not_held": "nothing sold so holds the load",
    "even_chance": "{month} a month for an even chance, on which nobody binds money",
    "no_saving": "{month} a month, no less than on demand",
}

# Precision of the weights -------------------------------------------------------------------------------------------

checkpoint_words = template(
    "[listed?{hf_id}, by {publisher}, [licensed?licence {license}|check its licence]|no checkpoint is known here]",
    listed=is_text(q.hf_id),
    licensed=is_text(q.license),
)
MADE_BY_ONESELF = "quantize the model, or load with the engine's own FP8"
unknown_checkpoint = template(
    "none in our catalog[wide?: convert it|[loaded?: load with the engine's own FP8|]; test the quality]",
    wide=q.is_wide == 1,
    loaded=q.is_loaded == 1,
)
TOO_LATE, NOT_HELD = "memory holds it, and nothing meets the targets", "no memory holds it"
published_words = template(
    f"[served?{{rented}}, {{usd}} a month|[held?{TOO_LATE}|{NOT_HELD}]]",
    served=is_number(q.n_instances),
    held=q.is_held > 0,
)
# What weights in a lower precision than the published ones buy.
weights_gains = template(
    "[more?serves {own} [rate?requests a second|at once], not {other}][both?, and ][surer?is {sure}, not {other_sure}]",
    more=is_text(q.own),
    rate=q.is_rate == 1,
    both=both(is_text(q.own), is_text(q.sure)),
    surer=is_text(q.sure),
)
weights_reason = template(
    "[held?[same?{dtype} costs the same as {published}, as published, and [gained?{gains}|buys nothing here]|"
    "{dtype} [saves?saves {usd} a month|costs {usd} more a month[gained? and {gains}]]: as published, in {published}, "
    "{month} a month on {rent}]|Nothing serves this in {published}, as published, within the targets].",
    held=is_text(q.month),
    same=q.is_same == 1,
    gained=is_text(q.gains),
    saves=q.is_saved == 1,
)
not_deployed = template("no GPU that takes part runs its FP8 checkpoint")

# What it serves, and how fast ----------------------------------------------------------------------------------

SERVES, MEMORY = "serves {served}[aimed? within the targets]", "memory for at least {memory_holds} at once"
AIMED = smallest(q.tpot_limit_seconds, q.ttft_limit_seconds) < q.no_limit_seconds
room = template(
    f"{SERVES}; {MEMORY}", when=is_number(q.n_instances), otherwise=None, served="{served_at_target}", aimed=AIMED
)
memory_words = template(MEMORY, when=is_number(q.n_instances), otherwise=None).formula(
    "memory_words", "Requests at once that the memory holds"
)
room_words = room.formula(
    "room_words",
    "Room in words",
    "How many requests the recommended hardware serves within the targets, and what memory alone would hold.",
    "served_at_target, memory_holds.",
)
rate_served = template(
    "[rate?{served_in_an_hour:grouped} requests an hour|{served_at_target}]",
    rate=q.requests_per_second > 0,
    served_in_an_hour=round_down(q.served_at_target * q.seconds_in_an_hour),
)
serves_words = template(
    f"{SERVES}[rate? (about {{max_wait_fraction:percent}} may wait)]",
    when=is_number(q.n_instances),
    otherwise=None,
    served=rate_served,
    aimed=AIMED,
    rate=q.requests_per_second > 0,
).formula("serves_words", "How much the hardware serves")
rate_or_room_words = room.saying(served=rate_served).formula(
    "rate_or_room_words",
    "Room in words",
    "How much the recommended hardware serves within the targets, requests at once or in an hour, and what memory\n"
    "alone would hold.",
    "served_at_target, memory_holds.",
)
throughput = template("{rate} tokens/s")
throughput_band = template("{rate} tokens/s ({low}–{high})")
longest_fit = template(
    "{requests} [whole?{requests:request fits|requests fit} even at the model's {limit}|{requests:request|requests} of "
    "{tokens} tokens {requests:fits|fit}]",
    whole=q.tokens >= q.limit_tokens,
)
replicas = template("{held:grouped} × {gpus}[spare?, {needed:grouped} needed]", spare=q.held > q.needed)
replica_breaks = template(
    "{requests}; [timed?too slow from {in_target:next}, ]memory for [counted?{counted} to ]{held}",
    timed=q.in_target < q.counted,
    counted=q.counted < q.held,
)
# Of a request that keeps less once its prompt is read than the engine's log counts for it.
log_counts = template(
    "{model}: the log counts {charged} {unit} a request, as while its prompt is read; then it keeps {kept}, so the "
    "pool holds {held}."
)
# most: the requests that each replica is started for, where the measured load is fewer.
measure_drive = template(
    "To measure {model}: [shared?{part}|{whole:grouped}] requests [rate?an hour (--request-rate {per_second}) on one "
    "machine's replicas, then {at_once} at once on each, which decides|at once on one machine's replicas, at most "
    "{at_once} on each]"
    "[written?|, of {input_tokens:grouped} + {output_tokens:grouped} tokens]."
    "[passes? It passes if [short?the start-up log shows that the load fits|[aimed?mean TTFT is at most {ttft} s]"
    "[both? and ][paced?mean TPOT is at most {tpot} ms]].]"
    "[fewer? Each is started for {most}; the load needs no more than {at_once}.]"
    "[written? Then sheetgen build --measured result.json.]",
    shared=is_text(q.part),
    rate=q.is_rate == 1,
    fewer=is_text(q.most),
    passes=either(q.is_short == 1, _AIMED, _PACED),
    short=q.is_short == 1,
    aimed=_AIMED,
    paced=_PACED,
    both=both(_AIMED, _PACED),
    written=q.is_written == 1,
)
memory_counted = template(
    "Sized for memory of {holds} requests at once on all replicas, with the engine's default buffers; started as above "
    "they hold more."
)
memory_finding = template("Of one GPU the weights take {weights}, the KV cache at its fullest {cache}")
speed_finding = template(
    "[aimed?[single?It meets both targets[mean? at the average load] [safe?even at the slowest of its range|as "
    "predicted, not at the slowest of its range]|[none?No model meets both targets[mean? at the average load] at the "
    "slowest of its range|{n_safe} of {n_models} models meet both targets[mean? at the average load] even at the "
    "slowest of their range]]|How fast it is]",
    mean=q.is_mean == 1,
    aimed=q.n_aimed > 0,
    single=q.n_models == 1,
    safe=q.n_safe == q.n_models,
    none=q.n_safe == 0,
)
breaks_finding = template(
    "[several?Fewest spare places: {model}, |Spare places: ][none?none|{n_more}] on the fullest replica",
    none=q.n_more == 0,
    several=q.n_models > 1,
)
start_note = template(
    "for bash[apart?; each model on machines of its own][several?; a flag after $FLAGS overrides it][balanced?; "
    "a load balancer sends to the least busy replica]",
    apart=q.n_models > 1,
    several=q.n_shared > 0,
    balanced=q.most_replicas > 1,
)
start_remark = template(
    "[staged?one replica on {n_machines} machines: start Ray on them first|[wide?on {n_machines} machines]]"
    "[files?; with {files}: --flags {engine} writes it]",
    when=either(q.n_machines > 1, is_text(q.files)),
    otherwise=None,
    wide=q.n_machines > 1,
    staged=q.is_staged > 0,
    files=is_text(q.files),
)
growing = template(
    "{requests} [whole?{requests:request fits|requests fit} even at the model's {limit}|"
    "{requests:fills|fill} the pool at {tokens} tokens] each",
    whole=q.tokens >= q.limit_tokens,
)
breaking_words = template(
    "{context_words} on {n_instances} × {instance}: {held} {held:request fits|requests fit}; request {held:next} does "
    "not.",
    when=is_number(q.n_instances),
    otherwise="{context_words}: {instance}.",
    held=q.replica_sequences * where(is_number(q.n_replicas), q.n_replicas, 0),
).formula("breaking_words", "Where it breaks")

# Checks, prices, money -------------------------------------------------------------------------------------------

check_word = template(OK, when=q.holds == 1, otherwise=CHECK).formula("check_word", "Check")
# Beside the word for all checks; n_old: the loads whose machines have an old price, which is no fault.
why_check = first_of(
    (
        q.n_wrong > 0,
        template(
            "{fault}: {held}[counted? of {expected}][more?; and {n_more} more]",
            fault=replace_text(q.line, ": none", ""),
            counted=q.expected > 0,
            more=q.n_wrong > 1,
            n_more=q.n_wrong - 1,
        ),
    ),
    (Unless(q.all_checks == OK), "a check cannot be worked out"),
    (
        q.n_old > 0,
        "No fault: the machines of {n_old} {n_old:load|loads} have a price older than {stale_after_days} days",
    ),
    otherwise="all checks hold",
).formula("why_check", "Why", "The first line that does not hold; where all do, the number of loads with old prices.")
instance_id = template("{provider}/{type}", when=is_text(q.type), otherwise=None).formula(
    "instance_id",
    "Instance",
    "The name of an instance in the catalogs: provider/type; none in a spare row.",
    "INTERFACE (instance names).",
)
age_word = first_of(
    (both(is_number(q.price_usd_per_hour), q.price_usd_per_hour != q.listed_usd_per_hour), "typed here"),
    (Unless(is_number(q.age_days)), "-"),
    (q.age_days > q.stale_after_days, "old"),
    otherwise="ok",
).formula(
    "age_word",
    "Price age",
    "`old` where the price is older than the sheet allows; `typed here` where it is not the one that was listed, whose"
    "\ndate and source then say nothing of it.",
    "the limit on Inputs, and the price as listed.",
)
together_words = template(
    "All models together", when=q.together == "yes", otherwise="Alternatives: do not add up"
).formula("together_words", "The total in words")
source_words = template(
    f"{{instance}}: [listed?{{source}}|{BY_READER}]", when=is_number(q.row), otherwise=None, listed=is_text(q.source)
).formula("source_words", "Source in words")
n_changed_here = template("{n_inputs} changed").formula("n_changed_here", "Inputs changed")
n_out_of_range = template("{n_inputs} out of range").formula("n_out_of_range", "Inputs out of range")
class_in_use = template("In use: {purchase}").formula("class_in_use", "Class in use")
contingency_on_class = template("Contingency on {purchase}").formula("contingency_on_class", "Contingency")
total_in_currency = template("Total, {currency}").formula("total_in_currency", "Total")
break_even_words = first_of(
    (Unless(is_number(q.capex_usd_per_gpu)), "The purchase price of this GPU is not known."),
    (
        Unless(both(is_number(q.low), is_number(q.base), is_number(q.high))),
        "The power of this GPU, or the on-demand price, is not known.",
    ),
    (q.base > 1, "Renting on demand is cheaper in any month (owning costs {base:percent} of it)."),
    otherwise="Owning is cheaper above {base:percent} of the hours ({low:percent} to {high:percent}) than on demand.",
).formula("break_even_words", "Break-even in words")

regions_of_prices = template(
    "Prices in [chosen?{region}|US regions; for Europe: sheetgen build --region eu]",
    chosen=is_text(q.region),
)
no_live_host = template(
    "{n_hosts} {n_hosts:host on our list has|hosts on our list have} it, none to be named: each is retired, without a "
    "source page, or was read more than {days} days before"
)
no_host_of_prompt = template("{n_hosts} {n_hosts:host serves|hosts serve} it, none a prompt of {tokens} tokens")

# Decision ---------------------------------------------------------------------------------------------------------

LAYERS = q.n_full_layers + q.n_windowed_layers + q.n_mla_layers + q.n_other_layers + q.n_state_layers
LACKS, TWICE = "facts missing:", "another row has this name"
answerable = q.choices_state == OK
cheapest_words = template(
    "{rent}", when=both(answerable, is_number(q.n_instances)), otherwise=None, rent=rent_of_type
).formula("cheapest_words", "Cheapest of all")
rent_of_way = template(
    "[already?already so|[served?[saves?{rent}|saves nothing]|nothing sold so]]",
    when=answerable,
    otherwise=None,
    already=q.is_already == 1,
    served=is_number(q.n_instances),
    saves=is_number(q.way_usd),
    rent=rent_of_type,
).formula("rent_of_way", "What a way to pay less rents")
cheapest_answer = template("{rent}", when=answerable, otherwise="{choices_state}", rent=rent_of_type).formula(
    "cheapest_answer", "Cheapest of all, or why none"
)
_OF_PEOPLE = both(is_number(q.users), q.users > 0)
decision_title = template(
    "{model}, [people?{users:grouped} {users:person|people}, {context_words} tokens each|"
    "[counted?{concurrent_requests:grouped} [several?requests|request] of {context_words} at once|no load]]: "
    "[served?{monthly_usd:usd} a month|{answer}]",
    people=_OF_PEOPLE,
    counted=is_number(q.concurrent_requests),
    several=q.concurrent_requests > 1,
    served=is_number(q.monthly_usd),
    answer=template("{instance}", when=answerable, otherwise="{choices_state}"),
).formula("decision_title", "The decision")
SERVED = is_number(q.n_instances)
a_year = template(
    "a month; {annual_usd:usd} a year; {hourly_usd:cents} an hour each",
    when=SERVED,
    otherwise=None,
    hourly_usd=ratio(ratio(q.monthly_usd, q.n_instances), q.own_paid_hours_per_month),
).formula("a_year", "A year")
sure_of_answer = template(
    "{how_sure} sure to be fast enough[even?; nothing is {confidence:percent} sure: measure first]",
    when=SERVED,
    otherwise=None,
    how_sure=how_sure,
    even=q.chance < q.confidence - q.chance_step,
).formula("sure_of_answer", "How sure")
at_sure = template(
    "90% sure: [served?{monthly_usd:usd} on {rent}|nothing is; measure first]",
    when=answerable,
    otherwise=None,
    served=SERVED,
    rent=rent_of_type,
).formula("at_sure", "At 90%")
at_even = template(
    "[dear?measure first: {how_sure} sure costs|even chance:] [served?{monthly_usd:usd} on {rent}|none]",
    when=answerable,
    otherwise=None,
    how_sure=how_sure,
    dear=where(both(SERVED, is_number(q.base_usd)), where(q.base_usd > q.measure_first_above * q.monthly_usd, 1, 0), 0)
    == 1,
    served=SERVED,
    rent=rent_of_type,
).formula("at_even", "At an even chance")
in_published = template(
    "as published, {weights_words}: [served?{monthly_usd:usd} on {rent}|nothing serves it]",
    when=answerable,
    otherwise=None,
    served=SERVED,
    rent=rent_of_type,
).formula("in_published", "As published")
where_one_fails = template(
    "a machine may fail: [spared?its spare is in the price|"
    "[served?{monthly_usd:usd} on {rent}, then {sure}|measure first]]",
    when=answerable,
    otherwise=None,
    spared=q.survive > 0,
    served=SERVED,
    rent=rent_of_type,
    sure=sure,
).formula("where_one_fails", "Where a machine may fail")
first_word = template(
    f"first word{BEYOND} in {{ttft_seconds:tenths}} s on average[aimed? (target {{target:tenths}} s)]",
    when=SERVED,
    otherwise=None,
    beyond=BEYOND_RUNS,
    aimed=is_number(q.ttft_ms),
    target=q.ttft_ms / q.milliseconds_per_second,
).formula("first_word", "First word")
pace_of_answer = template(
    "then a token every {ms:whole} ms[aimed? (target {tpot_ms:whole})]",
    when=SERVED,
    otherwise=None,
    ms=q.tpot_seconds * q.milliseconds_per_second,
    aimed=is_number(q.tpot_ms),
).formula("pace_of_answer", "Pace")
asked_in_words = template(
    "[people?{users:grouped} {users:person asks|people ask} {requests_per_user_per_day} times a day: "
    "{in_flight:digits} at once on average at peak, {mean_in_flight:digits} over the day|"
    "{concurrent_requests:grouped} at once[counted?: enough for {enough_for:grouped} "
    "{enough_for:person|people} who ask {requests_per_user_per_day} times a day]]",
    when=both(answerable, SERVED),
    otherwise=None,
    people=_OF_PEOPLE,
    counted=is_number(q.enough_for),
    mean_in_flight=ratio(q.in_flight, q.hours_in_a_day * q.peak_hour_share * q.burst_factor),
).formula("asked_in_words", "What is asked")
# A further machine serves the next person, where it holds a whole replica and no zone may be lost; other hardware may
# cost less.
_MOST_PEOPLE = round_down(q.served_at_target * ratio(q.users, q.requests_per_second))
up_to_people = template(
    "[people?up to {most:grouped} {most:person|people}|up to {served_at_target} at once]"
    "[next?; {one_more:grouped} {one_more:needs|need} at most {one_more_usd:usd}]",
    when=both(answerable, SERVED),
    otherwise=None,
    people=_OF_PEOPLE,
    most=_MOST_PEOPLE,
    one_more=where(_OF_PEOPLE, _MOST_PEOPLE, q.served_at_target) + 1,
    next=both(q.survive <= q.own_survive, q.replicas_per_instance >= 1),
    one_more_usd=q.monthly_usd + ratio(q.monthly_usd, q.n_instances),
).formula("up_to_people", "People up to whom the machines serve, and the next step")
at_once_label = template("[people?at once: not used|or requests at once]", people=_OF_PEOPLE).formula(
    "at_once_label", "Requests at once, or that people stand in their place"
)


def _steps_of(chance: Expr) -> Value:
    """A chance in the steps that it is told by."""
    return smallest(round_down(round_nearest(ratio(chance, q.chance_step), 2)), ratio(1, q.chance_step) - 1)


# The losses of a way, and its certainty where that is below the answer's.
PAYS_OFF = "pays off in {pays_after_months:tenths} months"
_HAS_CHANCES = both(is_number(q.way_usd), is_number(q.chance), is_number(q.base_chance))
_IS_DOUBTED = where(_HAS_CHANCES, where(_steps_of(q.chance) < _steps_of(q.base_chance), 1, 0), 0) == 1
_IS_OTHER = where(_HAS_CHANCES, where(_steps_of(q.chance) == _steps_of(q.base_chance), 0, 1), 0) == 1
# One machine in place of several.
LOST_WITH_IT = "nothing served if it fails"
_IS_ALONE = both(is_number(q.base_instances), q.n_instances == 1, q.base_instances > 1)
way_gives_up = template(
    f"{{gives_up}}[alone?; {LOST_WITH_IT}][doubted?; {{how_sure}} sure]",
    when=is_number(q.way_usd),
    otherwise=None,
    alone=_IS_ALONE,
    how_sure=how_sure,
    doubted=_IS_DOUBTED,
).formula("way_gives_up", "What a way gives up")
term_gives_up = template(
    f"cancelling[alone?; {LOST_WITH_IT}][other?; {{how_sure}} sure]; {PAYS_OFF}",
    when=both(is_number(q.commits_usd), is_number(q.base_usd)),
    otherwise=None,
    alone=_IS_ALONE,
    how_sure=how_sure,
    other=_IS_OTHER,
    pays_after_months=ratio(q.commits_usd, q.base_usd),
).formula("term_gives_up", "When a commitment has paid")
hours_lost = template("nights, weekends: {working_hours} of {hours} h")
hours_give_up = template(
    "{lost}",
    when=is_number(q.way_usd),
    otherwise=None,
    lost=hours_lost.saying(working_hours="{working_hours_per_month}", hours="{hours_per_month}"),
).formula("hours_give_up", "What working hours alone give up")
# other: a GPU of the same family that has one, its price, and the option that asks for it.
owning_unpriced = template(
    "Owning: {gpus} price unknown[other?; {other} {usd} each[named?: build --gpus {option}]].",
    other=is_text(q.other),
    named=is_text(q.option),
)
# Where machines are rented elsewhere; names: of the terms that no reader set.
owning_abroad = template("Owning: {prices} are US prices; set {options}.")
OWN_LOSES, OWN_PAYS_OFF = "cash, staff, space", "pays off in month {pays_after_months:whole}"
_OF_POWER, _OF_SPACE = q.usd_per_kwh == q.us_usd_per_kwh, q.colo_usd_per_kw_month == q.us_colo_usd_per_kw_month
# us: the terms that are prices of the United States where machines are rented elsewhere, as far as they stand.
own_gives_up = template(
    f"[priced?{OWN_LOSES}[old?; old price][abroad?; US [power?power][both? and ][space?space]][paid?; {OWN_PAYS_OFF}]|"
    f"{UNPRICED}]",
    old=q.capex_mark == "old",
    abroad=either(_OF_POWER, _OF_SPACE),
    power=_OF_POWER,
    both=both(_OF_POWER, _OF_SPACE),
    space=_OF_SPACE,
    priced=is_number(q.monthly_usd),
    paid=is_number(q.owning_pays_off_month),
    pays_after_months=q.owning_pays_off_month,
).formula("own_gives_up", "What owning gives up")
# What a host does not state: where it is, which matters where a region was requested, and its precision.
host_lacks = template(
    "[placed?place [unknown?and precision ]unknown|precision unknown]",
    placed=is_text(q.region),
    unknown=q.is_unknown == 1,
)
host_for = template(
    "The cheapest live host, [people?{users:grouped} people|{utilization:percent} of the hours]", people=q.users >= 1
).formula("host_for", "Whose requests a host is paid for")
cheapest_host = template("{host}", when=both(is_number(q.hosted_monthly_usd), is_text(q.host)), otherwise=None).formula(
    "cheapest_host", "Cheapest live host"
)
way_of_cash = template("{way}: [priced?{cash_usd:usd}|{lacking}]", priced=is_number(q.cash_usd)).formula(
    "way_of_cash", "A way to pay, with its cash, in a chart"
)
times_of_load = template("[people?People|Requests] multiplier", people=_OF_PEOPLE).formula(
    "times_of_load", "Load of a case"
)
times_of_price = template("[own?Price: your own list|Price multiplier]", own=q.is_own_price == 1).formula(
    "times_of_price", "Price of a case"
)
_UNCERTAINTIES = (
    "[people?people|requests]",
    "length",
    "list prices",
    "speed",
)  # in the order of Decision's rows


def _ties(places: range) -> Expr:
    """True where one of these is the largest uncertainty, or ties with it."""
    flags = [getattr(q, f"largest_{place}") for place in places]
    are_any: Expr = functools.reduce(operator.add, flags) > 0
    return are_any


def _name_of(place: int) -> str:
    """The name of an uncertainty where it is the largest, after others that tie with it."""
    between = f"[after_{place}?, | or ]" if place < len(_UNCERTAINTIES) - 1 else " or "
    return f"[is_{place}?{f'[before_{place}?{between}]' if place else ''}{_UNCERTAINTIES[place]}]"


_PLACES = range(len(_UNCERTAINTIES))
_LARGEST = template(
    "".join(map(_name_of, _PLACES)),
    None,
    "",
    people=_OF_PEOPLE,
    **{f"is_{place}": _ties(range(place, place + 1)) for place in _PLACES},
    **{f"before_{place}": _ties(range(place)) for place in _PLACES[1:]},
    **{f"after_{place}": _ties(range(place + 1, len(_UNCERTAINTIES))) for place in _PLACES[1:-1]},
)
change_of_month = template(
    "[even?{more:usd} either way|[falls?{less:usd} less][both? to ][rises?{more:usd} more]]",
    even=q.less == q.more,
    falls=q.less > 0,
    rises=q.more > 0,
    both=both(q.less > 0, q.more > 0),
)
LARGEST_UNCERTAINTY = "Largest uncertainty: "
_CERTAIN = "Neither load nor price moves the cost"
finding_of_bars = template(f"[moved?{LARGEST_UNCERTAINTY}{{uncertainty}}|{_CERTAIN}]", moved=is_text(q.uncertainty))
uncertain = template("{names}, [open?as nothing serves {end}|{change}]", open=is_text(q.end))
largest_uncertainty = template(
    "[moved?" + LARGEST_UNCERTAINTY + "{names}, [open?as nothing serves the high end|{change}]|" + _CERTAIN + "]",
    when=both(answerable, SERVED),
    otherwise=None,
    moved=q.largest_swing_usd + q.any_open > 0,
    open=q.any_open == 1,
    names=_LARGEST,
    change=change_of_month,
    less=q.largest_swing_usd - q.largest_rise_usd,
    more=q.largest_rise_usd,
).formula("largest_uncertainty", "The largest uncertainty")
both_high = template(
    "[people?People|Requests] and length at their high ends together: "
    "[served?{monthly_usd:usd} on {rent}|nothing serves it]",
    when=answerable,
    otherwise=None,
    people=_OF_PEOPLE,
    served=SERVED,
    rent=rent_of_type,
).formula("both_high", "Both high ends")


def _needed(fact: Expr, among: Expr) -> Expr:
    """True where a fact is there, or the model has none of the others of its kind."""
    needed: Expr = where(among > 0, fact, 1) > 0
    return needed


def _lacking(facts: dict[str, Expr]) -> Template:
    """A sentence with the names of the facts that are missing. facts: by name the condition under which it is there."""
    parts: dict[str, bool | str | Template] = {
        f"fact_{i}": template("", when, f" · {fact}") for i, (fact, when) in enumerate(facts.items())
    }
    return template(LACKS + "".join(f"{{{name}}}" for name in parts)).saying(**parts)


model_lacks = _lacking(
    {
        "layers": q.n_layers > 0,
        "query heads": q.n_heads > 0,
        "hidden size": q.hidden_size > 0,
        "vocabulary": q.vocab_size > 0,
        "feed-forward width, or experts": either(q.intermediate_size > 0, q.n_experts > 0),
        "feed-forward matrices": q.ffn_matrices > 0,
        "experts per token": _needed(q.experts_per_token, q.n_experts),
        "expert width": _needed(q.expert_intermediate_size, q.n_experts),
        "parameters in routed experts": _needed(q.n_params_routed, q.n_experts),
        "longest context": q.max_context_tokens > 0,
        "parameters": q.n_params > 0,
        "active parameters": q.n_params_active > 0,
        "layers of some kind of attention": LAYERS > 0,
        "KV heads (full)": _needed(q.full_kv_heads, q.n_full_layers),
        "key + value width": _needed(q.full_kv_width, q.n_full_layers),
        "KV heads (window)": _needed(q.windowed_kv_heads, q.n_windowed_layers),
        "width (window)": _needed(q.windowed_kv_width, q.n_windowed_layers),
        "window": _needed(q.window_tokens, q.n_windowed_layers),
        "latent width": _needed(q.mla_width, q.n_mla_layers),
        "other elements": where(q.n_other_layers > 0, q.other_elements_per_token + q.other_bytes_per_token, 1) > 0,
        "recurrent state": where(q.n_state_layers > 0, q.conv_bytes_per_state_layer + q.state_elements_per_layer, 1)
        > 0,
    }
).formula(
    "model_lacks",
    "Facts",
    "The facts of a model without which its memory or its price would come out too small.",
    "every model of the catalog has them; what is 0 where its kind of layer is absent may be blank.",
)


def _not_whole_from(least: int, amount: Expr) -> Unless:
    whole = where(round_down(amount) == amount, 1, 0)
    return Unless(where(is_number(amount), where(amount >= least, whole, 0), 0) == 1)


def _has_people() -> Expr:
    """True where the load is people, who ask so many times a day."""
    has_people: Expr = both(is_number(q.users), q.users > 0)
    return has_people


def _unless_people(case: Unless) -> Unless:
    """The case, for a load that is not people."""
    return Unless(either(_has_people(), case.condition))


def _people_who_ask_nothing() -> Expr:
    asks = q.requests_per_user_per_day
    is_wrong: Expr = where(_has_people(), where(is_number(asks), where(asks > 0, 0, 1), 1), 0) == 1
    return is_wrong


def _no_target(ms: Expr) -> Unless:
    return Unless(where(is_blank(ms), 1, where(is_number(ms), where(ms >= 0, 1, 0), 0)) == 1)


WRONG_TARGET = "the target must be a number of milliseconds, or blank"
choices_state = first_of(
    (Unless(q.model_known == 1), "no such model: {model}"),
    (Unless(q.workload_known == 1), "no such workload: {workload}"),
    (Unless(q.weight_dtype_known == 1), "no such precision of weights: {weight_dtype}"),
    (Unless(q.kv_cache_dtype_known == 1), "no such precision of the KV cache: {kv_cache_dtype}"),
    (Unless(q.purchase_known == 1), "no such purchase class: {purchase}"),
    (Unless(q.provider_known == 1), "no such provider: {provider}"),
    (Unless(q.region_known == 1), "no such region: {region}"),
    (Unless(both(is_number(q.confidence), q.confidence > 0, q.confidence < 1)), "the confidence must be a share"),
    (_unless_people(_not_whole_from(1, q.concurrent_requests)), "requests at once must be a whole number from 1"),
    (_people_who_ask_nothing(), "the questions a day of each must be a number above 0"),
    (_not_whole_from(1, q.context_tokens), "the context must be a whole number from 1"),
    (_not_whole_from(0, q.answer_tokens), "the answer must be a whole number from 0"),
    (_no_target(q.tpot_ms), WRONG_TARGET),
    (_no_target(q.ttft_ms), WRONG_TARGET),
    (q.answer_tokens > q.context_tokens, "the answer is longer than its context"),
    (Unless(q.facts == LACKS), "{model}: {facts}"),
    otherwise=OK,
).formula(
    "choices_state",
    "Choices",
    "OK where every choice stands in its list and the model has its facts; else what is wrong, the first of it.",
    "the lists of the dropdowns, and the facts of the chosen model.",
)


def _state_of_row(*cases: Case) -> Template:
    """The facts that a row of one's own still lacks: a dash where it is blank, OK where it is complete and its name is
    unique."""
    state = first_of(*cases, (q.n_named > 1, TWICE), otherwise=OK)
    return template("{state}", when=q.n_filled > 0, otherwise=None, state=state)


own_model_state = _state_of_row(
    (Unless(is_text(q.model)), "a name is missing"), (Unless(q.facts == LACKS), "{facts}")
).formula("own_model_state", "Row")
own_instance_state = _state_of_row(
    (
        Unless(
            both(
                is_text(q.provider),
                is_text(q.type),
                q.gpu_known == 1,
                q.gpu_count > 0,
                q.price_usd_per_hour > 0,
            )
        ),
        _lacking(
            {
                "provider": is_text(q.provider),
                "type": is_text(q.type),
                "GPU": is_text(q.instance_gpu),
                "a GPU of the GPUs sheet": where(is_text(q.instance_gpu), q.gpu_known, 1) == 1,
                "GPUs": q.gpu_count > 0,
                "$ per hour": q.price_usd_per_hour > 0,
            }
        ),
    )
).formula("own_instance_state", "Row")
