"""Names, bytes, money, hardware and speed as the page writes them, each format in one place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sheetgen.answer.answer_record import (
    RATE,
    CellRecord,
    ChosenRecord,
    LeverRecord,
    ModelRecord,
    RentalRecord,
)
from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.model import Model
from sheetgen.errors import shown
from sheetgen.program.sheet_program import OF_CHANCE
from sheetgen.question.deployment import SECONDS_PER_HOUR, draft_columns, model_columns
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.market import Candidate, vendor_name
from sheetgen.question.sheet_question import Question, SheetModel
from sheetgen.report import sentences
from sheetgen.report.page import NONE, Cell, ModelFacts, Text, capital, joined, words
from sheetgen.report.templates import short_type
from sheetgen.sizing import draft, kv_cache, weights
from sheetgen.sizing.cost import contingency_usd, in_currency, total_usd
from sheetgen.units import (
    CHANCE_STEP,
    NARROW,
    ONE_DECIMAL,
    SMALL_UNITS,
    TWO_DECIMALS,
    UNIT_BYTES,
    UNIT_NAMES,
    USD,
    USD_CENTS,
    WHOLE,
    Display,
    listed,
    rate_places,
)

MINUS = "−"
CENTS_BELOW = 100  # of a currency: smaller sums are shown with cents
MEMORY_ALONE = "size set by memory, not by speed"
MS = 1000  # milliseconds in a second
FROM_SECONDS = 10  # times of so many seconds and more are shown in whole ones
PROVIDERS = {
    "aws": "AWS", "azure": "Azure", "gcp": "GCP", "oci": "OCI", "ovhcloud": "OVHcloud", "coreweave": "CoreWeave",
    "digitalocean": "DigitalOcean", "jarvislabs": "JarvisLabs", "tensordock": "TensorDock", "sfcompute": "SF Compute",
}  # fmt: skip
_SHORT_MONEY = (  # up to so many dollars
    (999.5, USD),
    (999_950, Display('"$"#,##0.0"k"', 1, prefix="$", suffix="k", divisor=1e3)),
    (999_995_000, Display('"$"#,##0.00"M"', 2, prefix="$", suffix="M", divisor=1e6)),
    (float("inf"), Display('"$"#,##0.00"B"', 2, prefix="$", suffix="B", divisor=1e9)),
)
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}  # the fonts have them; other currencies go by their code
_SHARE = Display("0.##%", 0, optional=2, suffix="%", percent=True, thousands=False)
_PLAIN = Display("0.########", 0, optional=8)


def size(n_bytes: float, units: str) -> Cell:
    """Bytes in GiB or GB, without the unit: it stands in the head."""
    return Cell(n_bytes, replace(ONE_DECIMAL, divisor=UNIT_BYTES[units]))


def short_size(n_bytes: float, units: str) -> Cell:
    """The same for a narrow column: whole from a hundred on."""
    return Cell(n_bytes, replace(NARROW, divisor=UNIT_BYTES[units]))


def named_size(n_bytes: float, units: str) -> Cell:
    """Bytes with their unit: 131.4 GiB."""
    return words("{} {}", size(n_bytes, units), UNIT_NAMES[units])


def small_size(n_bytes: float, units: str, display: Display = ONE_DECIMAL) -> Cell:
    """Bytes of one token: 320.0 KiB (2^10 bytes) or 327.7 kB (10^3)."""
    divisor, name = SMALL_UNITS[units]
    return words("{} {}", Cell(n_bytes, replace(display, divisor=divisor)), name)


def middle_size(n_bytes: float, units: str) -> Cell:
    """Bytes of one request's state, whole: 147 MiB (2^20 bytes) or 154 MB (10^6)."""
    divisor, name = (2**20, "MiB") if units == "gib" else (10**6, "MB")
    return words("{} {}", Cell(n_bytes, replace(WHOLE, divisor=divisor)), name)


def whole(count: float) -> Cell:
    return Cell(count, WHOLE)


def money(usd: float | None) -> Cell:
    """Whole dollars: $80,358."""
    return Cell(usd, USD)


def dollars(usd: float, fx_rate: float = 1) -> Cell:
    """Whole dollars, cents below a hundred of the currency that they are printed in; NONE where no price is known."""
    if usd != usd:
        return NONE
    return Cell(usd, USD_CENTS) if usd * fx_rate < CENTS_BELOW else money(usd)


def short_money(usd: float | None, sign: str = USD.prefix) -> Cell:
    """Dollars, or another currency by its sign, for a narrow column: $516, $80.4k, $2.06M, $1.73B."""
    if usd is None:
        return NONE
    return Cell(usd, next(display for below, display in _SHORT_MONEY if usd < below).in_currency(sign))


FULL_MONEY_BELOW = 1_000_000


def full_money(usd: float | None) -> Cell:
    """Whole dollars, and in millions from a million on: $80,358, $2.06M."""
    return money(usd) if usd is None or usd < FULL_MONEY_BELOW else short_money(usd)


def is_short_money(cell: Cell) -> bool:
    """True where an amount is shown in thousands or more."""
    return cell.display.prefix != "" and cell.display.divisor != 1


def sign_of(currency: str) -> str:
    """A currency in a head: €, or its code."""
    return _SIGNS.get(currency, currency)


def prefix_of(sign: str) -> str:
    """The prefix of an amount: a sign, or a code and a space."""
    return f"{sign} " if sign.isalpha() else sign


def share(value: float) -> str:
    """A share as a percentage, with decimals only where it has some: 10%, 12.5%."""
    return _SHARE.text(value)


def price_class(purchase: str, discount_fraction: float) -> str:
    """The class of prices: on-demand, or on-demand less 20% under a contract with a discount."""
    return f"{purchase} less {share(discount_fraction)}" if discount_fraction else purchase


def discounted(purchase: str, question: Question) -> str:
    """The class of prices with the contracts' discounts: on-demand less 10% with AWS and 2% on all others."""
    if not question.discounts:
        return price_class(purchase, question.settings.discount_fraction)
    return f"{purchase} less {discount_words(question)}"


def discount_words(question: Question) -> str:
    """Every discount in words: 10% with AWS, 20% on Azure's reserved-1yr prices and 2% on all others."""
    general = question.settings.discount_fraction
    discounts = [f"{share(value)} {_discounted_whose(*key)}" for key, value in question.discounts.items()]
    return listed(
        [*discounts, f"{share(general)} on all others"] if general and discounts else discounts or [share(general)]
    )


def _discounted_whose(provider: str, purchase: str) -> str:
    if not purchase:
        return f"with {provider_name(provider)}"
    whose = f"{provider_name(provider)}'s " if provider else ""
    return f"on {whose}{purchase} prices"


def plain(value: float) -> str:
    """A number with decimals only where it has some: 730, 0.9."""
    return _PLAIN.text(value)


def change(before: float, after: float) -> str:
    """A new price relative to an old one: −38%, +12%, no change."""
    if after == before:
        return "no change"
    return f"{MINUS if after < before else '+'}{_percent(abs(after / before - 1))}"


def _percent(fraction: float) -> str:
    return str(sentences.share.fill(fraction=fraction))


def saving(lever: LeverRecord) -> Text:
    """The monthly saving of a lever: $6,049 (50%), no change, near tie, $1,200 more (+12%), now fits."""
    share_saved = saved_share(lever)
    return words("{} ({})", saved_money(lever), share_saved) if share_saved else saved_money(lever)


def saved_money(lever: LeverRecord) -> Text:
    """The same in dollars alone: $6,049, no change, near tie (only the choice within it), $1,200 more, now fits."""
    usd = lever.saved_usd
    if usd is None:
        return "now fits"
    if usd == 0:
        return "near tie" if lever.is_near_tie else "no change"
    return money(usd) if usd > 0 else words("{} more", money(-usd))


def saved_share(lever: LeverRecord) -> str:
    """The same as a share: 50%, +12% where it costs more; "" where nothing is saved."""
    fraction = lever.saved_fraction
    return f"{'' if fraction > 0 else '+'}{_percent(abs(fraction))}" if fraction else ""


def provider_name(provider: str) -> str:
    """A provider's id as it is written: AWS."""
    return PROVIDERS.get(provider.lower(), provider.replace("-", " ").title())


def instance_name(instance: str) -> str:
    """An instance in short: p5.48xlarge, ND96isr H200 v5."""
    return str(short_type(instance.partition("/")[2]))


def regions_of_prices(question: Question) -> Cell:
    """The regions of the prices, and how to get those of Europe."""
    return sentences.regions_of_prices.fill(region=region_words(question))


# Areas that a question may name.
_AREAS = {
    "af": "Africa", "ap": "Asia and the Pacific", "ca": "Canada", "eu": "Europe", "europe": "Europe",
    "me": "the Middle East", "mx": "Mexico", "sa": "South America", "uk": "the United Kingdom", "us": "the US",
    "us-gov": "US regions of the government",
}  # fmt: skip


def region_words(question: Question) -> str:
    """The region whose prices were requested: an area by its name, any other as typed; "" where none was."""
    region = question.filters.region or ""
    return _AREAS.get(region.lower(), shown(region))


def provider_of(instance: str) -> str:
    """The provider of an instance: AWS."""
    return provider_name(instance.partition("/")[0])


COUNTED_TYPE = re.compile(r"[0-9]+x ")


def rent(n_instances: int, instance: str) -> Cell:
    """The instances to rent: 2 × p5.48xlarge; of a type that is itself a count, 2 × (1x B200 SXM6)."""
    kind = instance.partition("/")[2]
    return sentences.rent.fill(n_instances, f"({kind})" if COUNTED_TYPE.match(kind) else kind)


def rented(rental: RentalRecord | None) -> Cell:
    """The instances of a rental; NONE without one."""
    return NONE if rental is None else rent(rental.n_instances, rental.instance)


def rented_gpus(n_instances: int, candidate: Candidate) -> Cell:
    """The GPUs of what is rented: 16× H100 SXM."""
    return gpus(n_instances * candidate.gpu_count, candidate)


def gpus(count: int, candidate: Candidate) -> Cell:
    """A number of a candidate's GPUs: 8× H100 SXM."""
    return sentences.gpus.fill(count, candidate.gpu.short_name)


def plural(count: int, noun: str) -> Cell:
    """1 replica, 2 replicas."""
    return words("{} {}", whole(count), noun if count == 1 else f"{noun}s")


def milliseconds(seconds: float) -> Cell:
    """Milliseconds, with a decimal below ten: 48, 6.3."""
    return Cell(seconds * 1e3, ONE_DECIMAL if seconds * 1e3 < 10 else WHOLE)


def pace(per_second: float) -> Cell:
    """Tokens a second: 640, and 0.31 of a load that asks for so few."""
    return Cell(per_second, WHOLE if per_second >= 1 else TWO_DECIMALS)


def throughput(cell: CellRecord) -> Cell:
    """`640 tokens/s (550–810)`, with its 80 % band; of a rate without, for it follows from the rate at any speed."""
    answer = cell.answer
    if cell.wait_fraction is not None:
        return sentences.throughput.fill(pace(answer.output_tokens_per_second))
    ends = answer.output_tokens_per_second_low, answer.output_tokens_per_second_high
    return sentences.throughput_band.fill(*map(pace, (answer.output_tokens_per_second, *ends)))


def seconds(value: float) -> Cell:
    """A time in seconds: 1.9, 0.48, 53."""
    return _seconds(value, _below_ten_seconds(value))


def _below_ten_seconds(value: float) -> Display:
    return ONE_DECIMAL if value >= 1 else TWO_DECIMALS


def _seconds(value: float, below: Display) -> Cell:
    return Cell(value, WHOLE if value >= FROM_SECONDS else below)


def sure(chance: float) -> Cell:
    """The chance that the rented machines serve the load: 70% sure."""
    return sentences.sure.fill(chance=chance, chance_step=CHANCE_STEP)


MARGIN = 0.9  # the confidence beside the answer's own
OF_LIMIT = {**OF_CHANCE, RATE: "how many requests a second they serve"}  # the limit that an answer may be least sure of
MEMORY = "memory"  # of the chances of an answer, the one that is no time's


def is_short(answer: ChosenRecord) -> bool:
    """True where an answer that is not sure is least sure of its memory, and not of a time."""
    return answer.limit == MEMORY and answer.chance < MARGIN


def measure_words(cell: CellRecord, confidence: float, day: str = "") -> Iterator[Cell]:
    """The reasons to measure before renting, in words. day: the price of measuring where it is not given elsewhere."""
    levels = [answer for answer in cell.by_confidence if answer]
    for reason in cell.measure_first:
        answer = levels[-1] if reason == "sure_dear" else levels[0] if levels else None
        values: dict[str, Cell | str] = {"day": day}
        if answer is not None:
            rented = rent(answer.n_instances, answer.instance)
            values |= {"usd": money(answer.monthly_usd), "rent": rented, "sure": sure(answer.chance)}
        yield sentences.MEASURE_FIRST[reason].fill(confidence=confidence, **values)


SHOWN_PROVIDERS = 6


def took_part(candidates: Sequence[Candidate]) -> str:
    """The providers and GPU vendors that were compared: of AWS, Azure and GCP, with GPUs of NVIDIA."""
    providers = list(dict.fromkeys(provider_name(candidate.provider) for candidate in candidates))
    vendors = list(dict.fromkeys(vendor_name(candidate.gpu.vendor) for candidate in candidates))
    if others := len(providers[SHOWN_PROVIDERS:]):
        providers[SHOWN_PROVIDERS:] = [str(plural(others, "other provider"))]
    return f"of {listed(providers)}, with GPUs of {listed(vendors)}"


def lost(question: Question) -> str:
    """The loss to be survived: replica, machine or zone."""
    return BY_NAME["survive"].words[question.settings.survive]


def rate_words(cell: CellRecord) -> Cell:
    """The rate of a load: 4.5 requests/s."""
    return _per_second(cell.requests_per_second)


def rate_number(rate: float) -> Cell:
    """A rate with as many decimals as it needs: 4.5."""
    places = rate_places(rate)
    return Cell(rate, Display(f"#,##0.{'#' * places}", optional=places) if places else WHOLE)


def _per_second(rate: float) -> Cell:
    return sentences.per_second.fill(rate_number(rate))


def stated_rate(question: Question) -> Cell:
    """The people or the rate of a sheet's headline: 200 people; 4.5 requests/s."""
    rate = question.rate
    assert rate is not None, "only a rate has no requests at once of its own"
    if rate.users:
        return sentences.people.fill(users=rate.users)
    return _per_second(rate.at_peak(question.settings, question.workloads[question.headline[0]]))


def target_words(workload: Workload) -> str:
    """The targets in force for a load: 50 ms a token, first token in 7.14 s; "" where there are none."""
    targets = [f"{three_digits(workload.token_target_ms)} ms a token"] if workload.token_target_ms else []
    if first := workload.ttft_target_ms:
        targets.append(
            f"first token in {three_digits(first / 1000)} s"
            if first >= MS
            else f"first token in {three_digits(first)} ms"
        )
    return ", ".join(targets)


def three_digits(value: float) -> str:
    """A target in three digits, as one derived from a load has many: 7.14, 52.6, 50."""
    return plain(float(f"{value:.3g}"))


DRAFT_COUNTED = (
    "The draft's weights and KV cache count in memory; speed counts what a step reads of that cache, and neither the "
    "tokens that the draft gains nor the time that it takes."
)


def draft_words(model: Model | None) -> str:
    """The draft model in use, and that no run of ours had one."""
    return "no draft model" if model is None else f"draft model {model.name}, never measured by us"


def targets_of_readers(question: Question) -> str:
    """The targets that set the sizes of the sheet, as its readers see them: "first word, tokens a second each: Chat 2.2
    s, 20"."""
    targets = _by_workload(question, _as_seen)
    both = f"sized for memory and for speed (first word, tokens a second each): {targets}"
    return f"{capital(both if targets else MEMORY_ALONE)}."


def _as_seen(workload: Workload) -> str:
    first, token = workload.ttft_target_ms, workload.token_target_ms
    targets = [f"{seconds(first / MS)} s"] if first else []
    return ", ".join([*targets, *([f"{pace(MS / token)} a second"] if token else [])])


def _by_workload(question: Question, said_of: Callable[[Workload], str]) -> str:
    """The words on each workload's targets, once where they agree; "" without targets."""
    if not question.settings.speed_targets:
        return ""
    by_name = {workload.name: said_of(workload) for workload in question.workloads}
    if len(set(by_name.values())) == 1:
        return next(iter(by_name.values()))
    return "; ".join(f"{name} {words}" for name, words in by_name.items() if words)


def budget_terms(code: str, fx_rate: float, contingency_fraction: float) -> tuple[str, str]:
    """The terms of a sum in the budget's currency, contingency and exchange rate, and the separator before them."""
    rate = [] if code == "USD" else [f"(1 USD = {plain(fx_rate)} {code})"]
    extra = [contingency_words(contingency_fraction)] if contingency_fraction else []
    return ", " if extra else " ", " ".join(extra + rate)


def contingency_words(contingency_fraction: float) -> str:
    """The contingency in an amount to approve: `with 10% contingency`; "" where there is none."""
    return f"with {share(contingency_fraction)} contingency" if contingency_fraction else ""


def month_as_budgeted(usd: float, code: str, fx_rate: float, contingency_fraction: float) -> str:
    """A month's dollars with contingency in the budget's currency: `EUR 40,554, with 10% contingency (1 USD = ...)`; ""
    where that adds nothing."""
    between, terms = budget_terms(code, fx_rate, contingency_fraction)
    if not terms:
        return ""
    total = in_currency(total_usd(usd, contingency_usd(usd, contingency_fraction)), fx_rate)
    return f"{code} {whole(float(total))}{between}{both_ways(terms, code, fx_rate)}"


def both_ways(terms: str, code: str, fx_rate: float) -> str:
    """The terms of `budget_terms` with the rate in the other direction, too."""
    return terms if code == "USD" else f"{terms.removesuffix(')')}; 1 {code} = {1 / fx_rate:.4g} USD)"


def shape_words(model: Model) -> str:
    """The words for a reference shape, which nobody can serve, with the nearest real models."""
    return f"a reference shape, no real model; near {' and '.join(model.nearest[:2])}"


def model_facts(question: Question, sheet_model: SheetModel, kept: ModelRecord) -> ModelFacts:
    units, model, state = question.settings.units, sheet_model.model, kept.state_bytes_per_sequence
    columns = model_columns(model, sheet_model.weight_dtype, sheet_model.kv_cache_dtype)
    columns["windowed_kv_heads_per_gpu"] = columns["windowed_kv_heads"]
    window = float(kv_cache.shard_windowed_bytes_per_token.of(columns))
    of_draft = columns | draft_columns(question.draft) | {"tensor_parallel_size": 1}
    drafted = float(draft.draft_bytes_per_token.of(of_draft))
    notes = [f"{small_size(drafted, units)} of it the draft's"] if drafted else []
    if model.is_reference_shape:
        notes.append(shape_words(model))
    if model.confidence == "unverified":
        notes.append("unverified figures")
    if state:
        notes.append(f"and {middle_size(state, units)} of state a request")
    if window:
        notes.append(f"and {small_size(window, units)} a token inside the window")
    return ModelFacts(
        name=model.name,
        weights_in=_weights_in_words(kept, sheet_model, units),
        kv_per_token=small_size(kept.kept_bytes_per_token, units),
        note="; ".join(notes),
    )


_FOUR_BITS = ("nvfp4", "mxfp4", "int4")


def _weights_in_words(kept: ModelRecord, sheet_model: SheetModel, units: str) -> Cell:
    """The weights in BF16, FP8, in 4 bits where a checkpoint is known, and in the precision in use."""
    listed = {checkpoint.weight_dtype for checkpoint in kept.checkpoints}
    four_bits = next((dtype for dtype in _FOUR_BITS if dtype in listed), None)
    dtypes = dict.fromkeys(("bf16", "fp8", *filter(None, (four_bits,)), sheet_model.weight_dtype))
    return joined(
        ", ",
        [
            words(
                f"{{}} in {weights_name(sheet_model.model, dtype)}",
                named_size(weights_in(sheet_model.model, dtype), units),
            )
            for dtype in dtypes
        ],
    )


def mixed_name(model: Model, dtype: str) -> str | None:
    """The precisions of a checkpoint that mixes two: FP4 experts, FP8 rest."""
    checkpoint = model.checkpoint(dtype)
    return (
        f"{checkpoint.mix.experts.upper()} experts, {checkpoint.mix.rest.upper()} rest"
        if checkpoint and checkpoint.mix
        else None
    )


def weights_name(model: Model, dtype: str) -> str:
    """A precision of a model's weights in words: FP8; of a checkpoint that mixes two, FP4 experts, FP8 rest."""
    return mixed_name(model, dtype) or dtype.upper()


def weights_in(model: Model, dtype: str) -> float:
    """Bytes of all weights in that precision: the size of a known checkpoint, else by the formula."""
    columns = model_columns(model, dtype, model.kv_cache_dtype)
    return float(weights.weights_bytes.of(columns))


def span(seconds: float) -> str:
    """A length of time in the largest unit of which it has two."""
    for unit, of_unit in (("days", 24 * SECONDS_PER_HOUR), ("hours", SECONDS_PER_HOUR), ("minutes", 60)):
        if seconds >= 2 * of_unit:
            return f"{seconds / of_unit:.0f} {unit}"
    return f"{seconds:.0f} seconds"
