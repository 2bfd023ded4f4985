"""Constants: units of formulas, purchase classes, layouts and precisions, and quantities that follow from inputs
alone."""

from __future__ import annotations

from sheetgen import units
from sheetgen.answer.confidences import ABOUT, MOST_OF_ASKED
from sheetgen.answer.sheet_facts import MILLISECONDS_PER_SECOND, NO_LIMIT_SECONDS, STRIDE, closed_loop, measured_columns
from sheetgen.answer.solution import Solution
from sheetgen.book.inputs_sheet import CLASSES, LABEL, NO_YES, NOTE, VALUE, InputsSheet
from sheetgen.book.lookups import ZERO, entry_of, position_or_after
from sheetgen.book.sheets import AND_AUTO, OF_WEIGHTS, PRECISIONS, Cell, Range, Ref, Validation
from sheetgen.book.wiring import Wiring, in_words
from sheetgen.program.sheet_program import OF_MEASUREMENTS
from sheetgen.question.deployment import DEFINITIONS, UNMEASURED
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.market import LEAST_LINK_BYTES_PER_SECOND
from sheetgen.question.overrides import TABLES
from sheetgen.sizing import cost
from sheetgen.sizing.certainty import confidence_z
from sheetgen.sizing.kv_cache import TOKENS_PER_K
from sheetgen.sizing.speed import network_bytes_per_second
from sheetgen.sizing.targets import ASSUMED
from sheetgen.units import (
    AUTO,
    CHANCE_STEP,
    DTYPE_ALIASES,
    DTYPES,
    FACTOR,
    GBPS,
    PERCENT,
    PLAIN,
    PUBLISHED,
    RECOMMENDED,
    TEXT,
    WHOLE,
    Display,
)

OF_MONEY = (
    ("hours_in_a_month", "Hours in a month", "hours", "8,760 / 12: what a commitment pays for, run or not."),
    ("months_in_a_year", "Months in a year", "months", ""),
    ("months_in_three_years", "Months in three years", "months", ""),
    ("decimal_base", "Ten", "", "People are rounded down to two figures."),
    ("seconds_in_an_hour", "Seconds in an hour", "seconds", ""),
    ("hours_in_a_day", "Hours in a day", "hours", ""),
    ("tokens_in_a_million", "Tokens in a million", "tokens", ""),
    ("watts_in_a_kilowatt", "Watts in a kilowatt", "watts", ""),
    ("cents_in_a_dollar", "Cents in a dollar", "cents", ""),
)
OF_KERNELS = (
    ("expert_kernels", "Kernels of a layer's experts"),
    ("state_kernels", "Kernels of a recurrent state"),
    ("sparse_kernels", "Kernels of sparse attention"),
)
NOTE_HEAD = {NOTE: "what"}


def build_constants(solved: Solution, wiring: Wiring) -> InputsSheet:
    """The sheet Constants, with every constant registered in `wiring`; `derive_constants` adds what follows from
    inputs."""
    page = InputsSheet(
        solved,
        wiring,
        "Constants",
        "What formulas count in, and what follows from inputs alone. "
        "Only the bytes of precisions are meant to be changed, for an engine of your own.",
    )
    for fill in (_money, _judgements, _memory, _speed, _measured, _precisions):
        fill(page)
    return page


def derive_constants(page: InputsSheet) -> None:
    """Quantities that follow from inputs alone, computed once: the purchase class in use, hours paid, yearly
    depreciation."""
    wiring, sheet = page.wiring, page.sheet
    page.section("What follows from inputs alone", NOTE_HEAD)
    purchase, names = wiring.inputs["purchase"], Range(wiring.area(CLASSES).refs)
    committed = wiring.lists["committed"]
    row = position_or_after(names, purchase)  # past the last where it is no class: nothing has a price then
    flag = entry_of(committed, names, purchase, ZERO)
    for name, label, value in (
        ("purchase_row", "Row of the class in use", row),
        ("is_committed", "It is a commitment (0 or 1)", flag),
    ):
        page.words(label, "")
        wiring.inputs[name] = sheet.link(page.row, VALUE, value, PLAIN, "computed")
        page.row += 1
    page.computed(cost.paid_hours_per_month, "hours", "Hours run, or all of the month under a commitment.")
    page.computed(cost.purchase_share_per_year, "", "A straight line, or an annuity at the cost of capital.")
    page.computed(confidence_z, "", "Of the chance on Inputs: how far above predictions times are taken.")
    wiring.inputs["level_z"] = wiring.inputs["confidence_z"]
    page.computed(network_bytes_per_second, "bytes/s", "Charged between machines: the least that they must have.")


def _money(page: InputsSheet) -> None:
    page.section("Money", NOTE_HEAD)
    for name, label, unit, note in OF_MONEY:
        page.fixed(name, label, cost.CONSTANTS[name], WHOLE, unit, note)
    usual = BY_NAME["utilization"]
    page.fixed(
        "least_utilization", "Least utilization", usual.kind.low, PLAIN, "", "Of a load that is stated by the day."
    )
    page.fixed("rate_utilization", "Utilization at a rate", usual.default, PLAIN, "", "Of a rate at the peak.")
    names, committed = list[Ref](), list[Ref]()
    for name, purchase_class in units.PURCHASES.items():
        page.words(name, "", f"Bought {purchase_class.words}: 1 where every hour of the term is paid for, run or not.")
        names.append(Ref(page.sheet.name, page.row, LABEL, name))
        committed.append(page.sheet.put(page.row, VALUE, Cell(int(purchase_class.committed), "fixed", PLAIN)))
        page.row += 1
    page.wiring.names[CLASSES] = Range(tuple(names))
    page.wiring.lists["committed"] = Range(tuple(committed))
    choices = BY_NAME["together"].kind.words
    for word in choices:
        page.words(word, "", "A choice of Inputs.")
        page.row += 1
    page.wiring.names[NO_YES] = Range(
        tuple(Ref(page.sheet.name, page.row - len(choices) + k, LABEL, word) for k, word in enumerate(choices))
    )


def _judgements(page: InputsSheet) -> None:
    """The rules by which default targets of speed follow from a load, and the least saving for which the next cheapest
    is named."""
    reference = page.solved.question.reference
    page.section("Default targets, and the next cheapest", NOTE_HEAD)
    for name in (*ASSUMED, "working_hours_per_month", "least_saving_fraction"):
        judgement = reference.assumptions[name]
        note = f"{judgement.unit[0].upper()}{judgement.unit[1:]}. {judgement.reason}."
        page.fixed(name, in_words(name), reference.assumption(name), PLAIN, "", note)


def _memory(page: InputsSheet) -> None:
    """The layouts that are tried, and the units that memory and tokens are counted in."""
    question, lists = page.solved.question, page.wiring.lists
    page.section("Layouts and memory", NOTE_HEAD)
    page.fixed(
        "least_link_bytes_per_second",
        "Links of ranks that share experts",
        LEAST_LINK_BYTES_PER_SECOND,
        WHOLE,
        "bytes/s",
        "Data-parallel layouts are for GPUs linked at least so fast.",
    )
    for name, label, sizes, note in (
        (
            "tp",
            "TP",
            (layout.tensor_parallel_size for layout in question.layouts),
            "Tensor-parallel sizes that are tried.",
        ),
        (
            "dp",
            "DP",
            (layout.data_parallel_size for layout in question.layouts),
            "Data-parallel ranks, for mixtures of experts.",
        ),
    ):
        lists[name] = Range(
            tuple(
                page.fixed(f"{name}_{i}", f"Layout {i}: {label}", size, PLAIN, "", note)
                for i, size in enumerate(sizes, 1)
            )
        )
    page.fixed(
        "usual_utilization",
        "Share of memory, the engine's default",
        question.engine.gpu_memory_utilization,
        PERCENT,
        "",
        "Where it stands on Inputs, each GPU has its own default.",
    )
    unit = question.settings.units
    page.fixed(
        "unit_bytes",
        f"Bytes in a {units.UNIT_NAMES[unit]}",
        units.UNIT_BYTES[unit],
        WHOLE,
        "bytes",
        "The page shows amounts in this unit.",
    )
    small_bytes, small = units.SMALL_UNITS[unit]
    page.fixed("small_unit_bytes", f"Bytes in a {small}", small_bytes, WHOLE, "bytes", "What one token takes.")
    page.fixed("tokens_per_k", "Tokens in 1k", TOKENS_PER_K, WHOLE, "tokens", "16k is 16,384.")


def _speed(page: InputsSheet) -> None:
    """Constants that all GPUs share, and the row of batches that are tried."""
    constants = page.solved.question.speed
    assert constants is not None
    page.section("Speed: what all GPUs share", NOTE_HEAD)
    for row in (
        ("nvlink_gpus", "GPUs of a node", constants.nvlink_gpus, PLAIN, "GPUs", constants.all_reduce_source),
        (
            "all_reduce_growth",
            "Growth of an all-reduce's latency",
            constants.all_reduce_growth,
            FACTOR,
            "",
            "(GPUs / GPUs of a node) to this power.",
        ),
        (
            "chunks_power",
            "Steps before a prompt grow with its chunks",
            constants.chunks_power,
            FACTOR,
            "",
            constants.chunks_source,
        ),
        *((name, label, getattr(constants, name), FACTOR, "", constants.kernels_source) for name, label in OF_KERNELS),
        (
            "least_step_seconds",
            "Shortest step of an engine",
            constants.least_step_seconds,
            FACTOR,
            "seconds",
            constants.least_step_source,
        ),
        (
            "network_hop_seconds",
            "Latency from machine to machine",
            constants.network_hop_seconds,
            FACTOR,
            "seconds",
            constants.network_source,
        ),
        ("bytes_per_gigabit", "Bytes in a gigabit", GBPS, WHOLE, "bytes", "A definition."),
        ("milliseconds_per_second", "Milliseconds in a second", MILLISECONDS_PER_SECOND, WHOLE, "ms", ""),
        *((name, in_words(name), value, FACTOR, "", "A definition.") for name, value in DEFINITIONS.items()),
        ("longest_prompt_tokens", "Longest measured prompt", constants.longest_prompt_tokens, WHOLE, "tokens", ""),
        (
            "measure_first_above",
            "Measure first above",
            MOST_OF_ASKED * ABOUT,
            FACTOR,
            "",
            "Times what an even chance costs: one measures before one rents.",
        ),
        (
            "tokens_per_page",
            "Tokens of a page",
            page.solved.question.reference.assumption("tokens_per_page"),
            WHOLE,
            "tokens",
            "Longer prompts are told in pages.",
        ),
        ("chance_step", "Chances are said to", CHANCE_STEP, FACTOR, "", "They are known no better."),
        ("closed_loop", "A request follows each answer", closed_loop(page.solved.question), PLAIN, "", "0: at a rate."),
        ("no_queue_seconds", "Waiting for memory", 0, PLAIN, "seconds", "Replicas are as many as hold all requests."),
        ("no_limit_seconds", "A target that is off", NO_LIMIT_SECONDS, WHOLE, "seconds", "Longer than anything takes."),
        (
            "requests_per_stride",
            "Requests of a stride",
            STRIDE,
            PLAIN,
            "requests",
            "The largest batch within the targets is found by strides, then request by request.",
        ),
    ):
        page.fixed(*row)


def _measured(page: InputsSheet) -> None:
    """The measured deployments with the values that their runs set; where there are none, the values that hold
    without."""
    question, lists = page.solved.question, page.wiring.lists
    measured = question.measurements.deployments
    if not measured:
        for name, value in UNMEASURED.items():
            display, unit = _shown(name)
            page.fixed(name, in_words(name), value, display, unit, "0: not measured.")
        return
    page.section("Measured deployments: what --measured set, by what served", NOTE_HEAD)
    sources = ["; ".join(deployment.sources) for deployment in measured]
    for name, column in measured_columns(question).items():
        display, unit = (TEXT, "") if column.dtype == object else _shown(name)
        notes = sources if name in OF_MEASUREMENTS.values() else [""] * len(sources)
        lists[name] = Range(
            tuple(
                page.fixed(f"{name}_{i}", f"{in_words(name)}, {i}", value, display, unit, note)
                for i, (value, note) in enumerate(zip(column.tolist(), notes, strict=True), 1)
            )
        )


def _shown(name: str) -> tuple[Display, str]:
    """The display and the unit of a quantity of measured deployments."""
    return (WHOLE, "bytes") if name.endswith("_bytes") else (FACTOR, "")


def _precisions(page: InputsSheet) -> None:
    tables = (  # a title, and by the name of each column its head
        ("Precisions of weights: bytes for each element", {"linear_bytes": "quantized", "other_bytes": "other"}),
        ("Precisions of weights: bytes for each element of the copy that a quantized layer makes of its input",
         {"activation_copy_bytes": "copy"}),
        ("Precisions of the KV cache: bytes for each element, and for a scale per token and head",
         {"kv_dtype_bytes": "element", "kv_scale_bytes": "scale"}),
    )  # fmt: skip
    for title, heads in tables:
        page.section(title, NOTE_HEAD)
        page.sheet.texts(page.row, LABEL, ("precision", *heads.values()))
        columns: dict[str, list[Ref]] = {k: [] for k in ("dtype", *heads)}
        for d in DTYPES.values():
            page.row += 1
            columns["dtype"].append(page.sheet.put(page.row, LABEL, Cell(d.name, "label", TEXT)))
            for column, (key, head) in enumerate(heads.items(), 1):
                default = getattr(d, {"kv_dtype_bytes": "kv_bytes"}.get(key, key))
                value = page.solved.question.overrides.value("precisions", d.name, key, default)
                accepted = Validation.of(TABLES["precisions"][key], f"Bytes, {head}")
                columns[key].append(page.sheet.put(page.row, column, Cell(value, "input", FACTOR, validation=accepted)))
            page.sheet.text(page.row, NOTE, d.about, "remark")
        page.row += 1
        page.wiring.lists |= {f"dtypes_{k}": Range(tuple(v)) for k, v in columns.items()}
    page.section("Precisions, as they are said", NOTE_HEAD)
    spelled = list[Ref]()
    for d in DTYPES.values():
        page.words(d.name, "")
        spelled.append(page.sheet.put(page.row, VALUE, Cell(d.name.upper(), "label", TEXT)))
        page.row += 1
    page.wiring.lists["words_of_dtypes"] = Range(tuple(spelled))
    aliases, meant = [], []
    for alias, name in DTYPE_ALIASES.items():
        aliases.append(page.sheet.put(page.row, LABEL, Cell(alias, "label", TEXT)))
        meant.append(page.sheet.put(page.row, VALUE, Cell(name, "label", TEXT)))
        page.sheet.text(page.row, NOTE, f"another name of {name}", "remark")
        page.row += 1
    words = []
    for word, about in (
        (AUTO, "the checkpoint's own precision"),
        (PUBLISHED, "the same, of the weights"),
        (RECOMMENDED, "of the weights: FP8 where a checkpoint is known, else as published"),
    ):
        words.append(page.sheet.put(page.row, LABEL, Cell(word, "label", TEXT)))
        page.sheet.text(page.row, NOTE, about, "remark")
        page.row += 1
    page.wiring.lists |= {"dtype_aliases": Range(tuple(aliases)), "dtypes_meant": Range(tuple(meant))}
    page.wiring.names[PRECISIONS] = Range((*columns["dtype"], *aliases))
    page.wiring.names[AND_AUTO] = Range((*columns["dtype"], *aliases, words[0]))
    page.wiring.names[OF_WEIGHTS] = Range((*columns["dtype"], *aliases, *words))
