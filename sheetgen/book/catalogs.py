"""Models, GPUs, and Prices and hardware: the catalogs' data, as inputs that a reader may change."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sheetgen import units
from sheetgen.answer.sheet_facts import gpu_columns, runs_kv, runs_weights
from sheetgen.answer.solution import Solution
from sheetgen.book import discount_table
from sheetgen.book.decision_choices import SPARE_INSTANCES, SPARE_MODELS
from sheetgen.book.figures import age_days, in_unit, kv_dtype_in_use, weight_dtype_in_use, weights_in_words
from sheetgen.book.lookups import NO_VALUE, ZERO, position_in, written
from sheetgen.book.sheets import NONE, Cell, CellValue, Lookup, Range, Ref, Sheet, Validation, choose, derived, lookup
from sheetgen.book.wiring import HEAD_ROWS, Table, Wiring, in_words, named, profile_columns, titled
from sheetgen.catalog.engines import MODEL_KINDS, RESIDUALS, SpeedConstants, band_names
from sheetgen.formula import Expr, Quantity, Value, both, formula, function, is_number, is_text, replace_text, where
from sheetgen.program.quantities import MODEL, WORK
from sheetgen.program.sheet_program import sheet_program
from sheetgen.question.deployment import model_columns
from sheetgen.question.market import Candidate, OwnedGpu
from sheetgen.question.overrides import TABLES, class_columns
from sheetgen.question.parse import FLAG, Kind, Raw
from sheetgen.question.parse import TEXT as TEXT_KIND
from sheetgen.report.notes import day_of
from sheetgen.report.sentences import age_word, instance_id
from sheetgen.report.wording import PROVIDERS, mixed_name, provider_name
from sheetgen.sizing import cost, memory
from sheetgen.sizing.parallelism import linked_gpus
from sheetgen.sizing.weights import SHARES, weights_bytes
from sheetgen.units import ENDS, EXACT_PERCENT, FACTOR, PERCENT, PLAIN, PRICE_DATE, TEXT, USD, USD_CENTS, WHOLE, Display

MOST_GPUS = 1024  # of one instance
DATE_NOTE = (
    "Where a list names a month or a year alone its first day, shown without the day; its age counts from there."
)

SHAPE = (
    ("n_layers", "Layers", "Layers of the model, those without a cache too."),
    ("n_heads", "Query heads", "Tensor parallelism must divide them."),
    ("hidden_size", "Hidden size", "Width of the residual stream."),
    ("vocab_size", "Vocabulary", "The sampler's peak follows it."),
    ("intermediate_size", "Feed-forward width", "The widest dense feed-forward layer; 0 where all are experts."),
    ("ffn_matrices", "Feed-forward matrices", "3 with a gate, 2 without."),
    ("n_experts", "Experts", "Routed experts of a layer; 0: none."),
    ("experts_per_token", "Experts per token", "Routed experts that a token goes through; 0: none."),
    ("expert_intermediate_size", "Expert width", "Feed-forward width of one routed expert."),
    ("encoder_item_tokens", "Tokens of an image", "Of the largest image or clip; 0: the model reads text."),
    ("encoder_item_elements", "Input of an image", "Elements of that image or clip, and what inner layers hand over."),
    ("encoder_item_patches", "Patches of an image", "Of that image or clip; 0: the encoder's own peak is not known."),
    ("encoder_hidden_size", "Encoder's hidden size", "Width of the encoder's residual stream."),
    ("encoder_ffn_elements", "Encoder's feed-forward", "Elements of a patch inside the encoder's feed-forward layer."),
    ("rope_table_elements", "Rotary tables, elements", "Elements of the sine and cosine tables that each GPU keeps."),
    ("max_context_tokens", "Longest context", "Tokens that the model's config accepts."),
    ("n_full_layers", "Full-attention layers", "Layers that keep keys and values of every token."),
    ("full_kv_heads", "KV heads (full)", "Key-value heads of the full-attention layers."),
    ("full_kv_width", "Key + value width", "Elements of one head's key and value together."),
    ("n_windowed_layers", "Windowed layers", "Layers that keep a window of tokens (sliding or chunked)."),
    ("windowed_kv_heads", "KV heads (window)", "Key-value heads of the windowed layers."),
    ("windowed_kv_width", "Width (window)", "The same for windowed layers."),
    ("window_tokens", "Window", "Tokens of the window or chunk."),
    ("window_is_chunked", "Chunked (0 or 1)", "1 for chunked attention (Llama 4), 0 for a sliding window."),
    ("n_mla_layers", "MLA layers", "Layers with multi-head latent attention."),
    ("mla_width", "Latent width", "Elements of a token that an MLA layer keeps on every rank."),
    ("mla_fp8_entry_bytes", "FP8 latent entry", "Bytes of the engine's own FP8 entry, where the GPU takes it; 0: none. "
     "A workbook of models without any is built anew with the first one."),
    ("mla_absorbed_elements", "Absorbed projections", "MLA up-projections kept a second time: elements, all layers."),
    ("attention_elements", "Attention, elements", "Heads x key and value width, all layers that see every token."),
    ("windowed_attention_elements", "Attention, windows", "The same of the windowed layers."),
    ("n_other_layers", "Compressed layers", "Layers that keep compressed entries (DeepSeek V4)."),
    ("other_elements_per_token", "Other elements", "Elements per token at the KV precision, all layers."),
    ("other_bytes_per_token", "Other bytes", "Bytes per token whatever the KV precision (index keys)."),
    ("n_state_layers", "Recurrent layers", "Layers that keep a fixed state (Mamba, delta net, ...)."),
    ("conv_bytes_per_state_layer", "Convolution state", "Bytes of one layer and sequence."),
    ("state_elements_per_layer", "Recurrent state", "Elements of one layer and sequence."),
    ("state_element_bytes", "Bytes of a state element", "4 where the model pins fp32, else 2."),
    ("n_params", "Parameters", "All parameters. They do not follow the layers typed here."),
    ("n_params_active", "active", "Parameters that one token uses."),
    ("n_params_quantizable", "in layers", "Parameters that quantization reaches: layers and experts."),
    ("n_params_copied", "copied on each rank", "Parameters that tensor parallelism does not divide: norms, routers."),
    ("n_params_routed", "in routed experts", "Parameters of the routed experts."),
    ("n_params_mtp", "in MTP layers", "Beside the total: a checkpoint may hold them; they wait for speculation."),
    ("n_params_embedding", "in the embedding", "Parameters of the token embedding."),
    ("n_params_per_layer_embedding", "in embeddings of layers", "Tables of which a step reads a few rows."),
    ("n_params_lm_head", "in the head", "Parameters of the output head; 0 where it is tied."),
)  # fmt: skip


LABELS = {name: label for name, label, _ in SHAPE} | {quantity.name: quantity.label for quantity in (*MODEL, *WORK)}
LABELS["is_mixture"] = "Mixture of experts (1 or 0)"
LABELS |= {name: f"{name.replace('_share_of_', ', share of ')} stages".capitalize() for name in SHARES}
LABELS |= {
    "side_blocks": "Blocks beside",
    "state_checkpoint_tokens": "Tokens between states kept",
    "n_indexed_layers": "Layers that choose entries",
    "indexed_entry_tokens": "Tokens of their entry",
    "n_pooled_layers": "Layers that read all entries",
    "pooled_entry_tokens": "Tokens of theirs",
    "packed_entry_bytes": "FP8 entry, bytes",
    "index_entry_bytes": "Index key, bytes",
}
FIXED = {  # facts of a model that are not typed
    **dict.fromkeys(SHARES, "Of the layers, on the heaviest stage, by their order; 0: all are alike."),
    "state_checkpoint_tokens": "Of a prompt, for the prefix cache; 0: recurrent layers keep none from within it.",
    "n_indexed_layers": "Compressed layers with index keys, whose compressed tokens overlap.",
    "indexed_entry_tokens": "That one compressed entry of such a layer stands for.",
    "n_pooled_layers": "Compressed layers without index keys.",
    "pooled_entry_tokens": "That one compressed entry of such a layer stands for.",
    "packed_entry_bytes": "Of a token in the window or a compressed entry, with its scales.",
    "index_entry_bytes": "Of one compressed entry, with its scale.",
    "side_blocks": "Blocks of a request for raw keys that are not pooled yet, and for an n-gram's convolution.",
}
# Columns of a catalog's data: head, display, width, note.
GIVEN: dict[str, tuple[str, Display, int, str]] = {
    "own_weight_dtype": ("Own weights", TEXT, 12, "The published precision: what published (or auto) stands for."),
    "recommended_weight_dtype": ("Recommended weights", TEXT, 14,
     "What recommended stands for: FP8 where an FP8 checkpoint of 16-bit weights is known, and a GPU that takes part"
     " runs it. Blank: as published."),
    "own_kv_dtype": ("Own KV", TEXT, 12,
     "What auto stands for: the 16-bit type, unless the checkpoint carries a KV precision."),
    "gpu_memory_bytes": ("Memory, bytes", WHOLE, 18, "Total memory as the engine sees it."),
    "basis": ("Basis", TEXT, 12, "measured: seen in a log; derived: nvidia-smi less a stated share."),
    "own_utilization": ("Share of memory by default", PERCENT, 12,
     "gpu_memory_utilization: the engine's default on this GPU."),
    "is_older_gpu": ("Older GPU (0 or 1)", PLAIN, 12, "1: memory outside torch is that of older GPUs on Inputs."),
    "shares_host_memory": ("Memory is the host's (0 or 1)", PLAIN, 16,
     "1: the host's processes take of it, too, and each machine has one GPU."),
    "has_heavier_graphs": ("Heavier graphs (0 or 1)", PLAIN, 16,
     "1: CUDA graphs of a layer take more memory here: the GPU has no HBM."),
    "runs_sparse_attention": ("Sparse attention (0 or 1)", PLAIN, 16,
     "0: the engine has no kernel on this GPU for models with an indexer or compressed entries."),
    "plain_fp8_latent": ("FP8 latents as they are (0 or 1)", PLAIN, 16,
     "1: sparse attention keeps FP8 latents without scales here. 0: in the engine's own FP8 entry (Models)."),
    "plain_columns": ("Profiles before its ranks", PLAIN, 12,
     "Columns of Profiles before the data-parallel layouts of this GPU; 0: it has none, as its links were not made"
     " for them when the workbook was built."),
    "measured_kinds": ("Kinds of models measured", PLAIN, 12,
     "Of which models runs of this engine on this GPU are among those that the constants were fitted on, added up:"
     " 1 dense, 2 experts, 4 windows, 8 recurrent states, 16 sparse attention."),
    "is_module_price": ("Price of the module (1) or installed (0)", PLAIN, 14,
     "A module's price is multiplied by the installed price's share on Inputs."),
    "stated_kw_per_gpu": ("kW per GPU, stated", FACTOR, 12,
     "With its share of the server. Blank: it follows from the rated power."),
    "is_it_power": ("Machine's own draw (1) or all-in (0)", PLAIN, 14,
     "A machine's own draw is multiplied by the PUE; an all-in figure has the cooling in it."),
    "sold_together": ("GPUs sold together", PLAIN, 12,
     "The fewest that one can buy: those of a board or a rack; cards are sold one by one."),
    "gpu_count": ("GPUs", PLAIN, 8,
     "Candidates has a column for each tensor-parallel size up to this count. For an instance with more GPUs fill "
     "a spare row."),
    "network_gbps": ("Network, Gb/s", PLAIN, 10, "Of the whole machine; blank where nobody states it."),
    "price_usd_per_hour": ("$ per hour", USD_CENTS, 12,
     "US dollars of one instance on demand, before discounts. Without a price in the class in use it cannot be "
     "rented."),
    "listed_usd_per_hour": ("Listed, $ per hour", USD_CENTS, 12, "The price that date and source are of."),
    "nvlink_domain_gpus": ("GPUs of its rack", PLAIN, 10,
     "That NVLink joins, this machine's among them; blank: its own alone."),
}  # fmt: skip
SMALL = Display("0.0000000##", 7, optional=2, thousands=False)  # microseconds, in seconds
CONSTANTS = tuple(SpeedConstants.model_fields)


def _give(
    table: Table,
    name: str,
    values: Iterable[CellValue],
    *,
    role: str = "input",
    validation: Validation | None = None,
    validations: Sequence[Validation] = (),
) -> None:
    """Add a column of the table GIVEN."""
    label, display, width, note = GIVEN[name]
    table.given(
        name,
        label,
        values,
        display,
        role=role,
        note=note,
        width=width,
        validation=validation,
        validations=validations,
    )


@formula("Has experts (1 or 0)", PLAIN)
def has_experts(n_experts: Quantity) -> Value:
    """1 where a model that a reader typed is a mixture of experts, else 0.

    Source: the experts typed.
    """
    return where(n_experts > 0, 1, 0)


def build_models(solved: Solution, wiring: Wiring) -> Sheet:
    """A row per model on the sheet: its shape (inputs), and the quantities that follow at the precisions in use."""
    models, overrides = solved.question.models, solved.question.overrides
    sheet = titled(
        "Models",
        "Models",
        "Architecture as the catalog has it, with sources; yellow cells may be changed.",
        freeze=(HEAD_ROWS + 1, 1),
    )

    def typed_over(i: int, column: str, value: Raw) -> Raw:
        return overrides.value("models", models[i].model.id, column, value)

    table = Table(wiring, sheet, len(models), "models", overrides=typed_over)
    rows = [model_columns(m.model, m.weight_dtype, m.kv_cache_dtype) for m in models]
    table.given("model", "Model", [m.model.name for m in models], TEXT, role="label", width=26)
    table.given("model_id", "Catalog id", [m.model.id for m in models], TEXT, role="label", width=22)
    for name, label, note in SHAPE:
        table.given(name, label, [r[name] for r in rows], WHOLE, note=note, width=14)
    _give(table, "own_weight_dtype", [m.auto_weight_dtype for m in models])
    _give(table, "recommended_weight_dtype", [m.recommended_weight_dtype for m in models])
    _give(table, "own_kv_dtype", [m.auto_kv_cache_dtype for m in models])
    for d in units.DTYPES:
        note = f"Size of a known {d} checkpoint in bytes; it beats the formula. Blank: none known."
        sizes = [m.model.checkpoint_bytes(d) or None for m in models]
        table.given(f"checkpoint_{d}", f"Checkpoint {d}", sizes, WHOLE, width=17, note=note)
    _add_spare_models(table, overrides.own_models)
    table.given(
        "is_mixture",
        LABELS["is_mixture"],
        [r["is_mixture"] for r in rows],
        PLAIN,
        role="fixed",
        note="1: its replicas are laid out over data-parallel ranks that share experts, too. Experts typed "
        "over a dense model's make no such layouts.",
    )
    built = table.columns["is_mixture"]
    own = (sheet.compute(n.row, built[0].column, has_experts, {"n_experts": n}) for n in table.spare["n_experts"])
    named(wiring.names, "tbl_models_mixtures", [*built, *own])
    table.given(
        "mixed_weights",
        "Mixed weights",
        [mixed_name(m.model, m.auto_weight_dtype) for m in models],
        TEXT,
        role="fixed",
        note="What the published weights are, where they mix two precisions.",
        width=22,
    )
    for name, note in FIXED.items():
        table.given(name, LABELS[name], [r[name] for r in rows], FACTOR, role="fixed", note=note)
    for name in ("mixed_weights", *FIXED):
        refs = table.columns[name]
        blank = (n._replace(column=refs[0].column, value=None) for n in table.spare["n_layers"])
        named(wiring.names, f"tbl_models_and_spare_{name}", [*refs, *blank])
    derive_models(table)
    fixed = {d: f"weights_{d}" for d in ("bf16", "fp8")}  # for the two rows of the first sheet
    for d, name in fixed.items():
        dtype_row = list(units.DTYPES).index(d)
        bytes_of = {key: wiring.lists[f"dtypes_{key}"].refs[dtype_row] for key in ("linear_bytes", "other_bytes")}
        checkpoints = [ref._replace(value=ref.value or 0) for ref in table.columns[f"checkpoint_{d}"]]
        table.computed(
            weights_bytes, {**bytes_of, "checkpoint_bytes": checkpoints}, name=name, label=f"Weights in {d}", width=17
        )
    unit = units.UNIT_NAMES[solved.question.settings.units]
    for d, name in fixed.items():
        table.computed(
            in_unit, {"amount_bytes": table.columns[name]}, name=f"{name}_in_unit", label=f"Weights in {d}, {unit}"
        )
    small = {"amount_bytes": table.columns["kv_bytes_per_token"], "unit_bytes": wiring.inputs["small_unit_bytes"]}
    table.computed(
        in_unit,
        small,
        name="kv_per_token_in_unit",
        label=f"KV per token, {units.SMALL_UNITS[solved.question.settings.units][1]}",
    )
    table.given("source", "Source", [m.model.source for m in models], TEXT, role="remark", width=120, linked=True)
    return sheet


def _add_spare_models(table: Table, own: Sequence[Mapping[str, Raw]]) -> None:
    """Add spare rows for a reader's own models, which Decision offers by the name that is typed."""
    sheet, n_spare = table.sheet, max(SPARE_MODELS, len(own))
    own = [*own, *[{}] * (n_spare - len(own))]
    for name, refs in table.columns.items():
        row, column = refs[-1].row, refs[-1].column
        given = sheet.cells[row, column]
        accepted = given.validation or Validation.of(TEXT_KIND, str(sheet.cells[table.top, column].value))
        blanks = [Cell(typed.get(name), "input", given.display, validation=accepted) for typed in own]
        table.spare[name] = [sheet.put(row + k, column, cell, lock="column") for k, cell in enumerate(blanks, 1)]
    label = sheet.cells[table.top, table.columns["model"][0].column]
    label.note = "The last rows are spare: fill one, and Decision has it in its dropdown."


def derive_models(table: Table) -> None:
    """Add the columns that follow from a model's shape at the precisions in use."""
    lists, columns = table.wiring.lists, table.columns
    recommended = {"recommended_dtype": columns["recommended_weight_dtype"]}
    for which, words, short, in_use, more in (
        ("weight_dtype", "weights", "Weights", weight_dtype_in_use, recommended),
        ("kv_dtype", "kv", "KV", kv_dtype_in_use, {}),
    ):
        asked = f"asked_{which}"
        choice = columns.get(f"choice_{which}", table.wiring.inputs[asked])
        env = {"asked_dtype": choice, "own_dtype": columns[f"own_{which}"], **more}
        table.computed(in_use, env, name=asked, label=f"{short} requested")
        table.looked_up(
            which,
            f"{short} in use",
            map(table.wiring.first_name, columns[asked]),
            TEXT,
            note="The precision by its first name.",
        )
        rows = (position_in(lists["dtypes_dtype"], dtype) for dtype in columns[which])
        table.looked_up(f"{which}_row", f"{short} row", rows, PLAIN, note="Row of the precision on Constants.")
        table.picked(f"{words}_words", f"{short} in words", lists["words_of_dtypes"], f"{which}_row", TEXT)
    table.computed(weights_in_words, {"dtype_words": columns["weights_words"]}, name="weights_words", width=24)
    for key, label, which in (
        ("linear_bytes", "Bytes, quantized weight", "weight_dtype"),
        ("other_bytes", "Bytes, other weight", "weight_dtype"),
        ("activation_copy_bytes", "Bytes, copied input", "weight_dtype"),
        ("kv_dtype_bytes", "Bytes, KV element", "kv_dtype"),
        ("kv_scale_bytes", "Bytes, KV scale", "kv_dtype"),
    ):
        table.picked(key, label, lists[f"dtypes_{key}"], f"{which}_row", FACTOR)
    by_row = zip(*(columns[f"checkpoint_{d}"] for d in units.DTYPES), strict=True)
    checkpoints = [[ref._replace(value=ref.value or 0) for ref in refs] for refs in by_row]
    sizes = (
        lookup(Range(refs, lock="columns"), row)
        for refs, row in zip(checkpoints, columns["weight_dtype_row"], strict=True)
    )
    table.looked_up(
        "checkpoint_bytes",
        "Checkpoint in use",
        sizes,
        WHOLE,
        width=17,
        note="Size of the known checkpoint at the precision in use; 0 where none is known.",
    )
    for quantity in sheet_program("draft_layers" in table.wiring.inputs)["models"].named().values():
        table.computed(quantity, {"plain_fp8_latent": ZERO}, width=18)  # until a GPU is named
    for name in band_names("anchored"):
        table.picked(name, in_words(name), lists[name], "speed_kind", FACTOR)


def build_gpus(solved: Solution, wiring: Wiring) -> Sheet:
    """A row per GPU of the candidates: memory as the engine sees it, batch limits, precisions that run."""
    question, columns = solved.question, gpu_columns(solved.question)
    gpus = question.gpus
    sheet = titled(
        "GPUs",
        "GPUs",
        "Memory is what the engine sees, never the marketed figure. Under a precision 1: it runs, 2: natively.",
        freeze=(HEAD_ROWS + 1, 1),
    )

    def typed_over(i: int, column: str, value: Raw) -> Raw:
        return question.overrides.value("gpus", gpus[i].id, column, value)

    table = Table(wiring, sheet, len(gpus), "gpus", overrides=typed_over)
    table.given("gpu", "GPU", [g.id for g in gpus], TEXT, role="label", width=30)
    table.given("gpu_name", "Short name", [g.short_name for g in gpus], TEXT, role="label", width=18)
    _give(table, "gpu_memory_bytes", [g.memory.engine_bytes for g in gpus])
    table.computed(
        in_unit,
        {"amount_bytes": table.columns["gpu_memory_bytes"]},
        label=f"Memory, {units.UNIT_NAMES[question.settings.units]}",
    )
    _give(table, "basis", [g.memory.basis for g in gpus], role="label")
    for key, label in (("max_num_seqs", "Most sequences"), ("max_num_batched_tokens", "Batched tokens")):
        note = f"{key}: the engine's default on this GPU."
        table.given(key, label, [int(v) for v in columns[key]], WHOLE, note=note)
    _give(table, "own_utilization", [float(v) for v in columns["own_utilization"]])
    table.computed(memory.utilization_on_gpu)
    for of_runs, words, condition in (
        ("measured", "measured TP", "up to the largest TP among measured runs"),
        ("elsewhere", "other TP", "at other tensor-parallel sizes"),
    ):
        for end, how in zip(ENDS, ("smaller", "larger"), strict=True):
            name = f"pool_error_bytes_{of_runs}_{end}"
            note = (
                f"Bytes by which the KV pool may be {how} {condition} ({end} end of the 80 % band); 0 where not known."
            )
            label = f"Pool's error, {words}, {end}"
            table.given(name, label, [float(v) for v in columns[name]], WHOLE, width=16, note=note)
    _give(table, "is_older_gpu", [int(question.engine.is_older(g.architecture)) for g in gpus])
    _give(table, "has_heavier_graphs", [int(question.engine.has_heavier_graphs(g.architecture)) for g in gpus])
    _give(table, "shares_host_memory", [int(g.memory.shared_with_host) for g in gpus])
    _give(
        table,
        "runs_sparse_attention",
        [int(question.engine.runs_sparse_attention(g.architecture)) for g in gpus],
        validation=Validation.of(FLAG, "Runs", "1: it runs, 0: it does not."),
    )
    _give(table, "plain_fp8_latent", [int(question.engine.keeps_plain_fp8_latents(g.architecture)) for g in gpus])
    _add_speed_columns(solved, table)
    first: dict[int, int] = {}  # column with ranks of each GPU, from 0
    for column, (i, layout) in enumerate(profile_columns(question)):
        if layout not in units.PLAIN_LAYOUTS:
            first.setdefault(i, column)
    _give(table, "plain_columns", [first.get(i, 0) for i in range(len(gpus))], role="fixed")
    for d in units.DTYPES:
        runs = [runs_weights(g, d) for g in gpus]
        message = "2: it computes in it, 1: it keeps weights in it alone, 0: neither."
        accepted = Validation.of(TABLES["gpus"][f"weights_{d}"], "Runs", message)
        table.given(f"weights_{d}", f"Weights {d}", runs, PLAIN, width=10, validation=accepted)
    for d in units.DTYPES:
        table.given(
            f"kv_{d}",
            f"KV {d}",
            [runs_kv(question, g, d) for g in gpus],
            PLAIN,
            width=10,
            validation=Validation.of(
                TABLES["gpus"][f"kv_{d}"], "Runs", "1: it runs, 2: but of latents, 0: it does not."
            ),
        )
    _add_owning_columns(solved, table)
    sources = [g.memory.source for g in gpus]
    table.given("source", "Source of the memory", sources, TEXT, role="remark_wrapped", width=90, linked=True)
    wiring.names["list_gpu"] = table.range("gpu")
    return sheet


def _add_speed_columns(solved: Solution, table: Table) -> None:
    """Add the inputs of the speed prediction by GPU: bandwidth, links, peaks, the engine's constants, and whether it
    was measured."""
    gpus = gpu_columns(solved.question)
    for name, label, note in (
        ("memory_bandwidth_bytes_per_second", "Bandwidth, bytes/s", "Of the GPU's own memory."),
        ("interconnect_bytes_per_second", "Links, bytes/s", "Each way, to the other GPUs of the node."),
        ("pair_link_bytes_per_second", "Bridge, bytes/s", "Each way, between the two GPUs that it joins; 0: none."),
        ("peak_flops_16_bit", "Peak, 16 bits", "Dense operations per second."),
        *(
            (f"peak_flops_{d}", f"Peak, {d} weights", "Dense operations per second with weights of this precision.")
            for d in units.DTYPES
        ),
    ):
        table.given(name, label, [float(v) for v in gpus[name]], WHOLE, width=24, note=note)
    for name in CONSTANTS:
        display = SMALL if name.startswith("seconds_per") else FACTOR
        label = str(SpeedConstants.model_fields[name].title)
        table.given(
            name,
            label,
            [float(v) for v in gpus[name]],
            display,
            width=13,
            note=f"{name}: fitted on measured runs (docs/speed.md).",
        )
    for name, (figure, _, words) in RESIDUALS.items():
        table.given(
            name,
            f"{figure.upper()}, {words}",
            [float(v) for v in gpus[name]],
            FACTOR,
            width=13,
            note=f"{name}: what the formulas leave on measured runs, a factor (docs/speed.md).",
        )
    _give(table, "measured_kinds", [int(v) for v in gpus["measured_kinds"]])
    for whose, names in (("own runs", band_names("fitted")), ("others' runs", band_names("other", MODEL_KINDS))):
        for name in names:
            label = f"{name.replace('_band', '').replace('_', ' ')}, {whose}"
            note = f"{name}: an end of the 80 % band of {whose}, a factor of the prediction (docs/speed.md)."
            table.given(name, label, [float(v) for v in gpus[name]], FACTOR, width=13, note=note)


def _add_owning_columns(solved: Solution, table: Table) -> None:
    """Add the purchase price of one GPU, as a range, and its power; blank where they are not known."""
    question = solved.question
    owned = [question.owning.gpus.get(g.id, OwnedGpu()) for g in question.gpus]
    for k, end in enumerate(("low", "base", "high")):
        usd = [o.capex_usd[k] if o.capex_usd else None for o in owned]
        table.given(
            f"capex_{end}_usd",
            f"Purchase, {end}, $",
            usd,
            USD,
            note="US dollars for one GPU. No maker publishes a price: type your own quote over all three.",
        )
    _give(table, "is_module_price", [o.is_module_price for o in owned])
    dates = [day_of(o.capex_as_of) for o in owned]
    table.given("capex_date", "Purchase price's date", dates, PRICE_DATE, note=DATE_NOTE)
    table.computed(
        price_mark, {"price_date": table.columns["capex_date"]}, name="capex_mark", label="Purchase price's age"
    )
    _give(table, "stated_kw_per_gpu", [o.stated_kw_per_gpu for o in owned])
    table.given("rated_watts", "Rated power, W", [o.rated_watts for o in owned], WHOLE, note="Watts of the GPU alone.")
    _give(table, "is_it_power", [o.is_it_power for o in owned])
    table.computed(cost.kw_per_gpu)
    _give(table, "sold_together", [o.sold_together for o in owned])
    sources = [f"{o.capex_source or 'no price known'}; power: {o.kw_source}" for o in owned]
    table.given("owning_source", "Source of price and power", sources, TEXT, role="remark", width=160, linked=True)


def build_instances(solved: Solution, wiring: Wiring) -> Sheet:
    """A row per candidate instance with its price, and spare rows that take part when filled."""
    rows, overrides = solved.question.rows, solved.question.overrides
    n_spare = max(SPARE_INSTANCES, len(overrides.own_instances))
    in_dollars = " in US dollars, as published" if wiring.currency else ""
    sheet = titled(
        "Prices and hardware",
        "Prices and hardware",
        f"Prices of every purchase class{in_dollars}, with date and source; Inputs says which is in use. The last rows "
        "are spare: fill one, it takes part.",
        freeze=(HEAD_ROWS + 1, 1),
    )

    def typed_over(i: int, column: str, value: Raw) -> Raw:
        """The value as typed into a row of the catalog or into a spare row, else the given one."""
        if i < len(rows):
            return overrides.value("instances", rows[i].instance, column, value)
        own = overrides.own_instances[i - len(rows) : i - len(rows) + 1]
        return own[0].get(column, value) if own else value

    def n_gpus(count: int) -> Validation:
        """The validation of an instance's number of GPUs: below the number that would allow a further tensor-parallel
        size."""
        most = next((t for t in units.TENSOR_PARALLEL_SIZES if t > count), MOST_GPUS + 1) - 1
        return Validation.of(Kind("whole", 1, most), "GPUs", "GPUs of one instance. For more, fill a spare row.")

    table = Table(wiring, sheet, len(rows) + n_spare, "instances", overrides=typed_over)
    discount_table.build_discounts(solved, wiring, sheet, table.top + table.n_rows + 2)  # below a blank row
    gpu = Validation("GPU", "A GPU of the GPUs sheet.", source="list_gpu")
    table.given("type", "Type", [r.instance.split("/", 1)[1] for r in rows], TEXT, width=40)
    table.given("provider", "Provider", [r.provider for r in rows], TEXT)
    table.given("instance_gpu", "GPU", [r.gpu.id for r in rows], TEXT, width=30, validation=gpu)
    counts = [r.gpu_count for r in rows]
    taken = [n_gpus(count) for count in (*counts, *[units.TENSOR_PARALLEL_SIZES[-1]] * n_spare)]
    _give(table, "gpu_count", counts, validations=taken)
    network = [r.network_gbps or None for r in rows]
    _give(table, "network_gbps", network)
    on_demand = [r.class_price(units.ON_DEMAND) for r in rows]
    listed = [p and p.usd_per_hour for p in on_demand]
    _give(table, "price_usd_per_hour", listed)
    table.given("region", "Region", [r.region for r in rows], TEXT, role="remark", width=14)
    dates = [p and day_of(p.price_as_of) for p in on_demand]
    table.given("price_date", "Price date", dates, PRICE_DATE, note=DATE_NOTE)
    _give(table, "listed_usd_per_hour", listed, role="fixed")
    domains = [r.nvlink_domain_gpus or None for r in rows]
    _give(table, "nvlink_domain_gpus", domains, role="fixed")
    own = [1 if r.brought else None for r in rows]
    table.given("is_own_price", "Of your own list (1)", own, PLAIN, role="fixed", width=10)
    filled = {n: [ref._replace(value=ref.value or 0) for ref in table.columns[n]] for n in linked_gpus.inputs}
    table.computed(linked_gpus, filled, width=8)
    table.computed(age_days)
    table.computed(age_word)
    table.computed(instance_id, width=46, name="instance")
    table.looked_up("provider_name", "Provider's name", provider_names(table.columns["provider"]), TEXT)
    _add_class_prices(solved, table)
    table.given("source", "Source", [r.source for r in rows], TEXT, role="remark", width=130, linked=True)
    return sheet


def provider_names(providers: Sequence[Ref]) -> Iterator[Lookup]:
    """The spelling of each provider's name (GCP, Lambda); no value in a spare row."""

    def as_written(id_: Value, other: Value) -> Value:
        spelled = functools.reduce(lambda rest, entry: where(id_ == entry[0], entry[1], rest), PROVIDERS.items(), other)
        return where(is_text(id_), spelled, NONE)

    for ref in providers:
        name = provider_name(ref.value) if ref.value else NONE
        other = written(name, lambda id_: function("PROPER", replace_text(id_, "-", " ")), ref)
        yield derived(as_written, ref, other)


@formula("Price age", TEXT)
def price_mark(as_of: Value, price_date: Value, stale_after_days: Quantity) -> Value:
    """`old` where a price was read longer ago than the sheet allows, `ok` else; none without a date.

    Source: the limit on Inputs; a date that names only a year or a month counts from its first day.
    """
    return where(is_number(price_date), where(as_of - price_date > stale_after_days, "old", "ok"), "-")


def class_stem(purchase: str) -> str:
    """A purchase class as part of a column's name."""
    return purchase.replace("-", "_")


def _add_class_prices(solved: Solution, table: Table) -> None:
    """Add the prices of the instances in each purchase class, blank where none is listed, and in the class in use."""
    rows = solved.question.rows
    for purchase in units.PURCHASES:
        names, prices = class_columns(purchase), [r.class_price(purchase) for r in rows]
        if purchase != units.ON_DEMAND:
            table.given(
                names["price"],
                f"$ per hour, {purchase}",
                [p and p.usd_per_hour for p in prices],
                USD_CENTS,
                note="A blank is no price.",
            )
            dates = [p and day_of(p.price_as_of) for p in prices]
            table.given(names["date"], f"Price date, {purchase}", dates, PRICE_DATE, note=DATE_NOTE)
            table.computed(
                price_mark,
                {"price_date": table.columns[names["date"]]},
                name=names["mark"],
                label=f"Price age, {purchase}",
            )
        kinds = [(p and p.price_kind) or None for p in prices]
        label = "Terms" if purchase == units.ON_DEMAND else f"Terms, {purchase}"
        table.given(names["terms"], label, kinds, TEXT, role="remark", width=24)
    for purchase in units.PURCHASES:
        passed = [1 if purchase in r.passed_over else None for r in rows]
        table.given(
            f"passed_over_{purchase}",
            f"Passed over, {purchase}",
            passed,
            PLAIN,
            role="fixed",
            note="1: another instance of the provider has the same GPUs for less, and takes part in this class "
            "in its place.",
        )
    in_use = list(units.PURCHASES).index(solved.question.settings.purchase)
    _add_class_in_use(table, in_use)
    _add_regions(table, rows, in_use)
    table.given("row", "Row", range(1, table.n_rows + 1), PLAIN, role="fixed", width=7)
    for name in ("provider", "region"):
        _put_in_order(table, name)


def _add_regions(table: Table, rows: Sequence[Candidate], class_place: int) -> None:
    """Add the region of each class's price, and of the class in use, whose index is `class_place`; nothing where all
    prices of a row are of its own region."""
    regions: dict[str, list[str | None]] = {}
    for purchase in units.PURCHASES:
        prices = [row.class_price(purchase) for row in rows]
        regions[purchase] = [(p.region or row.region) if p else None for p, row in zip(prices, rows, strict=True)]
    own = [row.region for row in rows]
    if all(region in (None, usual) for column in regions.values() for region, usual in zip(column, own, strict=True)):
        return
    for purchase, of_class in regions.items():
        table.given(f"region_{class_stem(purchase)}", f"Region, {purchase}", of_class, TEXT, role="remark", width=14)
    in_use, columns = table.wiring.inputs["purchase_row"], table.columns

    def region_in_use(of_class: Value, own: Value) -> Value:
        return where(is_text(of_class), of_class, where(is_text(own), own, NONE))

    def of_row(i: int) -> Lookup:
        of_class = of_class_in_use(
            [columns[f"region_{class_stem(p)}"][i] for p in units.PURCHASES], class_place, in_use
        )
        return derived(region_in_use, of_class, columns["region"][i])

    table.looked_up("region_in_use", "Region in use", map(of_row, range(table.n_rows)), TEXT)


def of_class_in_use(refs: Sequence[Ref], class_place: int, row: Ref) -> Lookup:
    """The look-up of the class in use among `refs`, a cell for each purchase class; no value where `row` names no
    class. class_place: the index of the class in use as built."""
    value = refs[class_place].value
    return replace(choose(row, refs, NO_VALUE), value=0 if value is None else value)


def _add_class_in_use(table: Table, class_place: int) -> None:
    """Add price, date and age in the purchase class in use, whose index as built is `class_place`; no value where the
    row takes no part."""
    row, columns = table.wiring.inputs["purchase_row"], table.columns

    def of(names: Sequence[str], i: int) -> Lookup:
        return of_class_in_use([columns[name][i] for name in names], class_place, row)

    def priced(usd: Value, passed: Quantity) -> Value:
        return where(both(is_number(usd), usd > 0, passed == 0), usd, NONE)

    def dated(usd: Value, date: Value) -> Value:
        return where(both(is_number(usd), date > 0), date, NONE)

    prices, dates, marks = ([class_columns(p)[key] for p in units.PURCHASES] for key in ("price", "date", "mark"))
    passed, rows = [f"passed_over_{purchase}" for purchase in units.PURCHASES], range(table.n_rows)
    entries = [derived(priced, of(prices, i), of(passed, i)) for i in rows]
    table.looked_up(
        "price_in_use",
        "$ per hour in use",
        entries,
        USD_CENTS,
        note="In the purchase class on Inputs, before discounts.",
    )
    in_use = list(units.PURCHASES)[class_place]
    table.looked_up(
        "discount_in_use",
        "Discount in use",
        (discount_table.of_class(table.wiring, provider, in_use, row) for provider in columns["provider"]),
        EXACT_PERCENT,
        note="Of the table below, in the same class.",
    )
    entries = [derived(dated, columns["price_in_use"][i], of(dates, i)) for i in rows]
    table.looked_up("date_in_use", "Price date in use", entries, PRICE_DATE)
    table.looked_up("mark_in_use", "Price age in use", [of(marks, i) for i in rows], TEXT)


def _of_rank(held: Expr, ranks: Expr, rank: Expr) -> Expr:
    return function("IFERROR", function("INDEX", held, function("SMALL", ranks, rank)), NONE)


def _put_in_order(table: Table, name: str) -> None:
    """Add a column with the distinct values of the column `name` in the order of its rows; values typed there
    follow."""
    column, rows = table.range(name), [row.value for row in table.columns["row"]]
    values = [r.value for r in column.refs]
    firsts = [row for row, value in zip(rows, values, strict=True) if value and values.index(value) == row - 1]

    def where_first(value: Value, place: Value, row: Quantity) -> Value:
        return where(is_text(value), where(place == row, row, NONE), NONE)

    places = [position_in(column, ref) for ref in column.refs]
    cells = zip(column.refs, places, table.columns["row"], strict=True)
    table.looked_up(
        f"first_of_{name}", f"First of its {name}", (derived(where_first, *sources) for sources in cells), PLAIN
    )
    first_rows = table.range(f"first_of_{name}")
    in_order = [*(values[row - 1] for row in firsts), *[NONE] * (table.n_rows - len(firsts))]
    listed = (
        written(value, _of_rank, column, first_rows, row)
        for value, row in zip(in_order, table.columns["row"], strict=True)
    )
    table.looked_up(f"{name}_in_order", f"{name.capitalize()}s in order", listed, TEXT, width=14)
