"""The schema of a model's file; its names (ids, aliases, Hugging Face ids, quantized checkpoints); and the columns that
sizing reads, the same for every model, derived from its layer list.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from sheetgen.catalog.base import Count, CountOrZero, Date, DtypeName, Entry, Id, Label, Many, Problem, Some, Text
from sheetgen.errors import ScenarioError
from sheetgen.units import DTYPES, STAGES_IN_ORDER


class FullAttention(Entry):
    """Layers that keep keys and values of every token; widths are per head."""

    kind: Literal["full"]
    n_layers: Count
    n_kv_heads: Count
    key_width: Count
    value_width: CountOrZero


class WindowedAttention(Entry):
    """Layers that keep keys and values of the last tokens only (windowed) or of the current chunk (chunked)."""

    kind: Literal["windowed", "chunked"]
    n_layers: Count
    n_kv_heads: Count
    key_width: Count
    value_width: CountOrZero
    window_tokens: Count


class LatentAttention(Entry):
    """Multi-head latent attention: one latent per token for all heads.

    absorbed_elements: per layer, the up-projections that the engine keeps a second time, in 16 bits and in the
    order in which decoding reads them (kv_lora_rank x heads x (nope + value width)). key_width: per head, for models
    of which some engines keep keys and values of all heads instead, with values padded to the keys' width.
    """

    kind: Literal["mla"]
    n_layers: Count
    latent_width: Count
    fp8_entry_bytes: CountOrZero = 0
    absorbed_elements: CountOrZero = 0
    key_width: CountOrZero = 0


class Indexer(Entry):
    """Index keys of sparse attention, kept beside the latent by some of the layers.

    side_blocks: blocks of a pool of equal pages that a request holds for the model's other groups: one for raw keys of
    tokens that are not pooled yet, two for the state of an n-gram convolution.
    """

    kind: Literal["indexer"]
    n_layers: Count
    width: Count
    entry_bytes: Count
    side_blocks: CountOrZero = 0


class Compressed(Entry):
    """Compressed keys and values beside a window: one entry, as wide as a token of the window, per `tokens_per_entry`.

    fp8_entry_bytes: an entry in FP8 with its scales and 16-bit part. Layers that select among their entries keep an
    index key of `index_width` elements in `index_entry_bytes` beside each; their compressed blocks overlap.
    """

    kind: Literal["compressed"]
    n_layers: Count
    tokens_per_entry: Count
    width: Count
    fp8_entry_bytes: Count
    index_width: CountOrZero = 0
    index_entry_bytes: CountOrZero = 0

    @property
    def elements_per_token(self) -> float:
        return (self.width + self.index_width) / self.tokens_per_entry


class Recurrent(Entry):
    """Layers with a fixed state per sequence: convolution (2 bytes an element) and recurrent part.

    checkpoint_tokens: the spacing of the states within a prompt that the prefix cache can keep: 1 for Mamba-2, 64 (the
    chunk of the kernel) for gated delta nets; 0 for layers without such states.
    """

    kind: Literal["recurrent"]
    n_layers: Count
    conv_elements: CountOrZero
    state_elements: Count
    state_dtype: Literal["bf16", "fp16", "fp32"]
    checkpoint_tokens: CountOrZero = 0


class NoCache(Entry):
    kind: Literal["no_cache"]
    n_layers: Count
    reason: Label


_Groups = FullAttention | WindowedAttention | LatentAttention | Indexer | Compressed | Recurrent | NoCache
Group = Annotated[_Groups, Field(discriminator="kind")]
BESIDE = ("indexer", "compressed")  # kinds whose layers are counted in another group too


SCALE_BLOCK, SCALE_BLOCKS = 128, "blocks of 128"  # FP8 weights that share a scale, and their words in a format
EXL3 = "exl3"  # the beginning of formats that only ExLlamaV3 loads
MTP = "mtp"  # the draft's name that means a model's own layers for multi-token prediction
MOST_DENSE_LAYERS = 4  # dense layers before a mixture's first layer of experts


class Params(Entry):
    """Numbers of parameters by part; embedding to per_layer_embedding add up to the total.

    `copied` and `unquantized` are parts of the body: those that every tensor-parallel rank keeps whole (norms, routers,
    latent down-projections), and those that quantization leaves in 16 bits (norms, routers, biases, convolutions).
    `mtp_extra` is outside the total: an engine loads it only for speculative decoding.
    """

    total: Count
    embedding: CountOrZero
    body: CountOrZero
    routed_experts: CountOrZero = 0
    lm_head: CountOrZero = 0
    vision: CountOrZero = 0
    per_layer_embedding: CountOrZero = 0
    mtp_extra: CountOrZero = 0
    copied: CountOrZero = 0
    unquantized: CountOrZero = 0
    active: Count
    note: Text | None = None


class Experts(Entry):
    n: Count
    top_k: Count
    shared: CountOrZero = 0


class LayerRun(Entry):
    """Consecutive equal layers, for models whose layers differ so much that their order matters to pipeline stages."""

    n: Count
    params: CountOrZero
    caches: bool


class Encoder(Entry):
    """The encoder, and the largest image or clip of the engine's profile run: its tokens and input elements.

    Where known: the patches of that image, the encoder's width and feed-forward width, and the width of an encoded
    token in widths of the language model (`outputs`: 1, and one more for each inner layer that passes on its features).
    """

    max_item_tokens: Count
    max_item_elements: CountOrZero
    max_item_patches: CountOrZero = 0
    hidden_size: CountOrZero = 0
    intermediate_size: CountOrZero = 0
    gated_ffn: bool = False
    outputs: Annotated[int, Field(ge=1, le=100)] = 1
    source: Text

    def shape(self, language_width: int) -> dict[str, int]:
        """The encoder's columns for sizing, beside a language model of this width."""
        handed_over = (self.outputs - 1) * self.max_item_tokens * language_width
        return {
            "encoder_item_tokens": self.max_item_tokens,
            "encoder_item_elements": self.max_item_elements + handed_over,
            "encoder_item_patches": self.max_item_patches,
            "encoder_hidden_size": self.hidden_size,
            "encoder_ffn_elements": (3 if self.gated_ffn else 2) * self.intermediate_size,
        }


NO_ENCODER = dict.fromkeys(
    (
        "encoder_item_tokens",
        "encoder_item_elements",
        "encoder_item_patches",
        "encoder_hidden_size",
        "encoder_ffn_elements",
    ),
    0,
)


class Mix(Entry):
    """The precisions of a checkpoint whose experts have another than the rest; fp4: a 4-bit float of unstated kind."""

    experts: DtypeName | Literal["fp4"]
    rest: DtypeName


class Checkpoint(Entry):
    """A published checkpoint of a model.

    `of`: the weights that were quantized, if they are not the entry's own but others of its architecture.
    `kv_cache_dtype`: the KV cache precision that its config states, if any. `license`: its own, if known. `mix`: the
    precisions of experts and the rest, where these differ; `weight_dtype` is the one by which it is requested.
    """

    hf_id: Label | None = None
    of: Label | None = None
    license: Label | None = None
    weight_dtype: DtypeName
    kv_cache_dtype: DtypeName | None = None
    format: Label
    mix: Mix | None = None
    size_bytes: Count
    source: Text

    @property
    def publisher(self) -> str | None:
        """The organisation on Hugging Face; None for a checkpoint without an id."""
        return self.hf_id.split("/")[0] if self.hf_id else None


class LeftOut(Entry):
    """Names of a model that is deliberately not entered, or words of such a GPU's name, and the reason."""

    names: Some[Label]
    reason: Text
    config_counts: bool = True  # whether its family is counted, so that its config.json would do
    source: Text


class LeftOutFile(Entry):
    file_name: ClassVar[str] = "left_out.yaml"
    checked_on: Date
    models: Many[LeftOut] = ()
    gpus: Many[LeftOut] = ()

    def gpu_reason(self, words: Collection[str]) -> str | None:
        """The reason why a GPU with these words in its name is not entered; None where no entry has such words
        alone."""
        return next(
            (entry.reason for entry in self.gpus if any(set(n.split()) <= set(words) for n in entry.names)), None
        )

    def model(self, name: str) -> LeftOut | None:
        """The entry for a model's name; None where there is none."""
        bare = without_precision(name)
        plain = {stem(name), stem(bare[0] if bare else name)}
        return next((entry for entry in self.models if plain & {stem(other) for other in entry.names}), None)


MODELOPT = ("fp8", "nvfp4")  # precisions of NVIDIA's checkpoints, most of them with scales for the KV cache
SPARE_WORDS = {"meta", "instruct", "chat", "it", "hf", "base"}  # parts of a name without effect on the shape

# The end of a checkpoint's name, and the precision of its weights. First match wins.
_SUFFIXES = tuple(
    (re.compile(rf"[-_.]({pattern})$"), dtype)
    for pattern, dtype in (
        (r"fp8[-_](dynamic|static|block|kv|tensor)", "fp8"),
        (r"(quantized\.)?w8a8[-_]fp8", "fp8"),
        (r"fp8", "fp8"),
        (r"nvfp4(a16)?([-_](kv|v\d+))?|fp4", "nvfp4"),
        (r"mxfp4", "mxfp4"),
        (r"gptq[-_](int8|8bit)|(quantized\.)?(w8a8|w8a16)([-_](int8|g128))?|int8|8bit", "int8"),
        (r"(quantized\.)?w4a16([-_]g128)?", "int4"),
        (r"(awq|gptq|autoround)([-_](int4|4bit|g128|w4a16|marlin))*", "int4"),
        (r"(unsloth[-_])?bnb[-_]4bit|int4([-_](awq|gptq|autoround))?|4bit", "int4"),
        (r"bf16", "bf16"),
        (r"fp16", "fp16"),
    )
)


def stem(name: str) -> str:
    """A Hugging Face name as a catalog id: without organisation and spare words, in lower case."""
    last = name.strip().lower().rsplit("/", 1)[-1].replace("_", ".")
    parts = last.split("-")
    return "-".join(part for part in parts if part not in SPARE_WORDS) or last


# Text around a model's name: a revision or a tag, a cache folder's form of an id, and the address of a registry.
_REVISION = re.compile(r"@[0-9a-z._-]+$|:(latest|main|free)$", re.IGNORECASE)
_CACHED = re.compile(r"(?:.*/)?models--([^/]+?)--([^/]+)(?:/.*)?")
_REGISTRY = re.compile(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co|modelscope\.cn/models)/", re.IGNORECASE)
# The end of a name that states a training or a date, not another shape: 0324, 2507, 250324, 2025-03-24, -sft.
_TRAINED = re.compile(
    r"[-_.]((20)?2[0-9](0[1-9]|1[0-2])([0-3][0-9])?|(0[1-9]|1[0-2])[0-3][0-9]|20[0-9]{2}-[01][0-9]-[0-3][0-9]"
    r"|fine-?tuned?|ft|sft|dpo|grpo|rlhf|tuned|merged|abliterated|uncensored)$",
    re.IGNORECASE,
)
_GGUF = re.compile(r"([-_.:](gguf|(ud-)?i?q[1-8](_[0-9a-z]+)*))+$", re.IGNORECASE)


# A config in a source: Qwen--Qwen2.5-72B_config.json, huggingface.co/Qwen/Qwen2.5-72B/blob/main/config.json.
_CONFIG_OF = re.compile(r"([\w.-]+?)--([\w.-]+?)_config\.json|huggingface\.co/([\w.-]+)/([\w.-]+)/blob/")


def pasted(name: str) -> str:
    """A model's name without the text that logs, caches and registries put around it:
    `models--Qwen--Qwen3-8B/snapshots/a09a` is `Qwen/Qwen3-8B`, `Llama 3.1 8B@main` is `Llama-3.1-8B`."""
    bare = name.strip().strip("\"'").rstrip("/")
    if cached := _CACHED.fullmatch(bare):
        bare = f"{cached[1]}/{cached[2]}"
    return re.sub(r"\s+", "-", _REVISION.sub("", _REGISTRY.sub("", bare)))


def untrained(name: str) -> str:
    """A model's name without the endings of dated builds and fine-tunes."""
    while (shorter := _TRAINED.sub("", name)) != name:
        name = shorter
    return name


def without_gguf(name: str) -> str:
    """The model's name in that of a GGUF file: `Llama-3.3-70B-GGUF:Q4_K_M` gives Llama-3.3-70B."""
    return _GGUF.sub("", name)


def without_precision(name: str) -> tuple[str, str] | None:
    """`x-FP8-dynamic` as (`x`, `fp8`); None if the name does not end with a precision."""
    low = name.strip().lower()
    for pattern, dtype in _SUFFIXES:
        if match := pattern.search(low):
            return low[: match.start()], dtype
    return None


_ATTENTION = (  # columns derived from the layer list; 0 where a model has no such part
    "n_full_layers", "full_kv_heads", "full_kv_width", "n_windowed_layers", "windowed_kv_heads", "windowed_kv_width",
    "window_tokens", "window_is_chunked", "n_mla_layers", "mla_width", "mla_fp8_entry_bytes", "mla_absorbed_elements",
    "n_other_layers", "other_elements_per_token", "other_bytes_per_token", "attention_elements",
    "windowed_attention_elements", "n_state_layers", "conv_bytes_per_state_layer", "state_elements_per_layer",
    "state_element_bytes", "state_checkpoint_tokens", "side_blocks", "n_indexed_layers", "indexed_entry_tokens",
    "n_pooled_layers", "pooled_entry_tokens", "packed_entry_bytes", "index_entry_bytes",
)  # fmt: skip
CONV_ELEMENT_BYTES = 2  # the convolution's state is 16-bit in every engine
# MLA widths of all models so far (DeepSeek, Kimi, GLM): a latent of 512, and 64 for the rotary part.
MLA_LATENT, MLA_ROTARY = 512, 64
MLA_KEY_AND_VALUE = 320  # per head, where the up-projections are not known: DeepSeek's 192 and 128


class Model(Entry):
    """A model's shape, names and checkpoints.

    sized_as: for other weights of an entry's architecture under their own name, the entry's id; never in a file.
    hosted_as: for a config of the user's own, the id of the catalog model of the same name; empty for none.
    """

    id: Id
    name: Label
    hf_id: Label | None = None
    aliases: Many[Id] = ()
    same_architecture: Many[Label] = ()
    max_context_of: dict[Label, Count] = Field(default_factory=dict)
    kind: Literal["model", "draft", "reference_shape"] = "model"
    license: Label | None = None
    confidence: Literal["sourced", "partly_derived", "unverified", "formula"]
    source: Text
    checked_on: Date
    n_layers: Count
    hidden_size: Count
    intermediate_size: Count | None = None
    moe_intermediate_size: Count | None = None
    n_heads: Count
    vocab_size: Count
    max_context_tokens: Count | None
    context_source: Text | None = None
    weight_dtype: DtypeName
    kv_cache_dtype: DtypeName
    parallel_hybrid: bool = False
    nearest: Many[Id] = ()
    attention: Some[Group]
    layers_in_order: Many[LayerRun] = ()
    params: Params
    experts: Experts | None = None
    gated_ffn: bool = True
    rope_table_elements: CountOrZero = 0
    encoder: Encoder | None = None
    checkpoints: Many[Checkpoint] = ()
    notes: Many[Text] = ()
    sized_as: Id | None = None
    hosted_as: Id | Literal[""] | None = None

    @property
    def publisher(self) -> str | None:
        """The organisation that published the weights; None where no id is known."""
        return self.hf_id.split("/")[0] if self.hf_id else None

    @property
    def is_reference_shape(self) -> bool:
        """True for a round shape between real models, without any checkpoint."""
        return self.kind == "reference_shape"

    @property
    def entry_id(self) -> str:
        """The id of the catalog file: for other weights of an entry's architecture, the entry's."""
        return self.sized_as or self.id

    @property
    def hosted_id(self) -> str:
        """The id under which hosted.yaml has the model; empty for none."""
        return self.id if self.hosted_as is None else self.hosted_as

    @property
    def expert_width(self) -> int | None:
        """The hidden width of one routed expert, which has three matrices; None without experts, or where no number of
        dense first layers gives a whole width."""
        if self.experts is None:
            return None
        for n_dense_layers in range(MOST_DENSE_LAYERS + 1):
            of_width = 3 * self.hidden_size * self.experts.n * (self.n_layers - n_dense_layers)
            if of_width > 0 and self.params.routed_experts and self.params.routed_experts % of_width == 0:
                return self.params.routed_experts // of_width
        return None

    def blocks_width(self, hf_id: str | None, weight_dtype: str) -> int:
        """The experts' width in a checkpoint in which blocks of weights share a scale; 0 for other checkpoints.

        A checkpoint that the catalog lacks, such as one of other weights of this architecture, is assumed to have the
        format of those of its precision.
        """
        formats = [c.format for c in self.checkpoints if c.hf_id == hf_id]
        formats = formats or [c.format for c in self.checkpoints if c.weight_dtype == weight_dtype]
        return (self.expert_width or 0) if any(SCALE_BLOCKS in stored for stored in formats) else 0

    def splits_scale_blocks(self, hf_id: str | None, weight_dtype: str, tensor_parallel_size: int) -> bool:
        """True if tensor parallelism would split blocks of experts' weights that share a scale.

        Engines then refuse to load the checkpoint, unless a flag makes them distribute whole experts.
        """
        return self.blocks_width(hf_id, weight_dtype) % (tensor_parallel_size * SCALE_BLOCK) != 0

    def weights_named(self, name: str) -> str | None:
        """The Hugging Face id of the weights that a name means if they, or the weights of that checkpoint, are others
        of this architecture; None for the entry's own."""
        low = name.strip().lower()
        bare = without_precision(low)
        keys = (low, *((bare[0],) if bare else ()))
        others = {stem(weights): weights for weights in reversed(self.same_architecture)}
        exact = {weights.lower(): weights for weights in self.same_architecture}
        exact |= {stored.hf_id.lower(): stored.of for stored in self.checkpoints if stored.hf_id and stored.of}
        own = {self.id, stem(self.hf_id or ""), *self.aliases} - (others.keys() - {self.id, stem(self.hf_id or "")})
        for key in keys:
            if key in own or stem(key) in own:
                return None
            if key in exact or stem(key) in others:
                return exact.get(key) or others[stem(key)]
        return None

    def derivative(self, weights: str) -> Self:
        """Other weights of this architecture as a model under their own name, sized as this one."""
        is_ours = weights.split("/")[0] == (self.hf_id or "").split("/")[0]
        changes = {
            "id": stem(weights),
            "name": weights.rsplit("/", 1)[-1],
            "hf_id": weights if "/" in weights else None,
            "aliases": (),
            "license": self.license if is_ours else None,
            "sized_as": self.id,
        }
        other = self.model_copy(update=changes)
        shape = "whose architecture it has" if other.is_listed else "whose architecture it is taken to have"
        return other.model_copy(update={"source": f"sized as {self.id}, {shape}; {self.source}"})

    @property
    def _config_of_another(self) -> str | None:
        """The checkpoint whose config the source cites, unless it cites that of hf_id, of a copy, or of hf_id in
        another precision: the config of a base model is not that of its Instruct checkpoint."""
        named = ["/".join(filter(None, match.groups())) for match in _CONFIG_OF.finditer(self.source)]
        own = (self.hf_id or "").rsplit("/", 1)[-1].lower().removesuffix("-bf16")
        is_own = any(name.rsplit("/", 1)[-1].lower().startswith(own) for name in named)
        return None if is_own or not own else next(iter(named), None)

    @property
    def is_listed(self) -> bool:
        """True if the catalogs state that the weights have the shape they are sized by; false if only the name does."""
        return self.sized_as is None or self.hf_id in self.same_architecture

    def context_of(self, weights: str) -> int | None:
        """The maximum context in tokens of other weights of this architecture, by their name in lower case; None where
        it is the entry's own, or unknown. A base model, whose name differs from hf_id only by -Instruct, is found by
        its whole name alone."""
        stated, own = {name.lower(): n for name, n in self.max_context_of.items()}, stem(self.hf_id or self.id)
        whole = {name.rsplit("/", 1)[-1]: n for name, n in stated.items()}
        by_stem = {stem(name): n for name, n in stated.items() if stem(name) != own}
        return stated.get(weights) or whole.get(weights) or by_stem.get(weights) or by_stem.get(stem(weights))

    def base_named(self, name: str) -> str | None:
        """The base model with this whole Hugging Face id, if its context differs from that of hf_id; else None.

        Its quantized checkpoints differ from those of hf_id too.
        """
        own = stem(self.hf_id or self.id)
        return next((base for base in self.max_context_of if base.lower() == name and stem(base) == own), None)

    def problems(self) -> Iterator[Problem]:
        if self.sized_as is not None:
            yield ("sized_as",), "sized_as stands in no file: name other weights of a shape in same_architecture"
        own_names = {name for name in (self.hf_id, *self.same_architecture) if name}
        if self.max_context_tokens is None and self.kind != "draft":
            yield ("max_context_tokens",), "max_context_tokens is missing; only a draft may do without"
        if (other := self._config_of_another) and self.context_source is None:
            yield (
                ("max_context_tokens",),
                f"source is the config of {other}, and hf_id is {self.hf_id}, which may state another context. Say in "
                "context_source where that of hf_id was read",
            )
        for name in self.max_context_of:
            if name not in own_names:
                yield ("max_context_of", name), f"{name} is neither hf_id nor in same_architecture"
        seen: dict[str, object] = {}
        for i, group in enumerate(self.attention):
            heads = getattr(group, "n_kv_heads", 1)
            if self.n_heads % heads:
                yield ("attention", i, "n_kv_heads"), f"n_kv_heads {heads} does not divide n_heads {self.n_heads}"
            if group.kind in ("indexer", "no_cache"):
                continue
            column: str = "windowed" if group.kind == "chunked" else group.kind
            if group.kind == "compressed":
                column += " with index keys" if group.index_width else " without index keys"
            # Latents of several widths count at their mean: all are added up, and none is read alone.
            own = {"n_layers", "latent_width", "absorbed_elements"} if group.kind == "mla" else {"n_layers"}
            shape = group.model_dump(exclude=own)
            if seen.setdefault(column, shape) != shape:
                problem = f"a second {column} group of another shape, which the sheet has no columns for"
                yield ("attention", i), problem
        if all(g.kind == "no_cache" for g in self.attention):
            yield ("attention",), "no layer keeps a cache or a state: nothing to size by context"
        layers = sum(g.n_layers for g in self.attention if g.kind not in BESIDE)
        if layers != self.n_layers and not self.parallel_hybrid:
            yield ("n_layers",), f"n_layers is {self.n_layers}, but the attention groups have {layers} layers"
        if self.layers_in_order and sum(run.n for run in self.layers_in_order) != self.n_layers:
            yield ("layers_in_order",), f"layers_in_order has not the {self.n_layers} layers of the model"
        p = self.params
        parts = p.embedding + p.body + p.routed_experts + p.lm_head + p.vision + p.per_layer_embedding
        if parts != p.total:
            yield ("params", "total"), f"total is {p.total:,}, but its parts add up to {parts:,}"
        for part in ("copied", "unquantized"):
            if getattr(p, part) > p.body:
                yield ("params", part), f"{part} {getattr(p, part):,} is more than the body's {p.body:,}"
        if p.active > p.total:
            yield ("params", "active"), f"active {p.active:,} is more than total {p.total:,}"
        if self.experts and self.experts.top_k > self.experts.n:
            yield (("experts", "top_k"), f"top_k {self.experts.top_k} is more than the {self.experts.n} experts")
        for i, checkpoint in enumerate(self.checkpoints):
            if checkpoint.hf_id and checkpoint.hf_id == self.hf_id and checkpoint.weight_dtype != self.weight_dtype:
                stored = f"{checkpoint.hf_id} is stored in {checkpoint.weight_dtype} (checkpoints)"
                yield ("weight_dtype",), f"weight_dtype is {self.weight_dtype}, but {stored}"
            is_modelopt = checkpoint.publisher == "nvidia" and checkpoint.weight_dtype in MODELOPT
            if is_modelopt and not checkpoint.kv_cache_dtype:
                problem = f"the hf_quant_config.json of {checkpoint.hf_id} states a precision of the KV cache"
                yield ("checkpoints", i), f"{problem}: enter it as kv_cache_dtype, as bf16 where it states none"
        if p.routed_experts and not self.experts:
            yield ("params", "routed_experts"), "routed_experts is given, but experts is missing"

    def names(self) -> tuple[list[str], list[str]]:
        """The model's own names, and the names derived from them and its checkpoints, in lower case."""
        own = [self.id, *self.aliases, *self.same_architecture, *([self.hf_id] if self.hf_id else [])]
        shorter = [parted[0] for name in own if (parted := without_precision(name)) and parted[1] == "bf16"]
        checkpoints = [checkpoint.hf_id for checkpoint in self.checkpoints if checkpoint.hf_id]
        follows = [self.name, *map(stem, [*own, *shorter]), *checkpoints]  # workbooks and pages use self.name
        return [name.lower() for name in own], [name.lower() for name in follows]

    def foreign_format(self, weight_dtype: str) -> str:
        """A clause that engines cannot load the model's checkpoint of a precision, and which programs can; else ""."""
        checkpoint = self.checkpoint(weight_dtype)
        if checkpoint is None or not checkpoint.format.startswith(EXL3):
            return ""
        return f"loads no {checkpoint.format}: ExLlamaV3 does, and servers on it (TabbyAPI, Aphrodite)"

    def own_draft(self) -> Self:
        """The checkpoint's own layer for multi-token prediction, as a draft model.

        Raises ScenarioError where none is known, or where it keeps more than keys and values or a latent.
        """
        kinds = {group.kind for group in self.attention} - {"recurrent", "no_cache"}
        group = next((attention for attention in self.attention if kinds == {attention.kind}), None)
        if not self.params.mtp_extra:
            raise ScenarioError(f"draft_model {MTP}: no layers for multi-token prediction of {self.id} are known.")
        if isinstance(group, LatentAttention):
            kept = FullAttention(kind="full", n_layers=1, n_kv_heads=1, key_width=group.latent_width, value_width=0)
        elif isinstance(group, FullAttention):
            kept = group.model_copy(update={"n_layers": 1})
        else:
            raise ScenarioError(
                f"draft_model {MTP}: the layer of {self.id} keeps a window or index keys, too, which is not sized."
            )
        params = self.params.model_copy(update={"total": self.params.mtp_extra, "mtp_extra": 0})
        fields = {"id": MTP, "name": f"the MTP layer of {self.name}", "kind": "draft", "attention": (kept,)}
        return self.model_copy(update={**fields, "params": params, "checkpoints": (), "layers_in_order": ()})

    @property
    def heads(self) -> tuple[FullAttention | WindowedAttention, ...]:
        """The groups of layers whose heads keep keys and values."""
        return tuple(group for group in self.attention if isinstance(group, (FullAttention, WindowedAttention)))

    def with_whole_heads(self) -> Self:
        """The model for an engine that keeps keys and values of all heads in place of latents that state a key
        width."""
        if not any(isinstance(g, LatentAttention) and g.key_width for g in self.attention):
            return self
        groups = [
            FullAttention(
                kind="full",
                n_layers=g.n_layers,
                n_kv_heads=self.n_heads,
                key_width=g.key_width,
                value_width=g.key_width,
            )
            if isinstance(g, LatentAttention) and g.key_width
            else g
            for g in self.attention
        ]
        return self.model_copy(update={"attention": tuple(groups)})

    def shape(self) -> dict[str, float]:
        """The columns that sizing reads; 0 where a model has no such part.

        Groups of one kind have the same shape (the schema checks it), so only their layers are added up.
        """
        p = self.params
        expert_width = self.moe_intermediate_size or self.intermediate_size or 0
        out: dict[str, float] = dict.fromkeys(_ATTENTION, 0)
        for g in self.attention:
            if isinstance(g, (FullAttention, WindowedAttention)):
                kind, prefix = ("full", "") if g.kind == "full" else ("windowed", "windowed_")
                out[f"n_{kind}_layers"] += g.n_layers
                out[f"{kind}_kv_heads"] = g.n_kv_heads
                out[f"{kind}_kv_width"] = g.key_width + g.value_width
                out[f"{prefix}attention_elements"] += g.n_layers * self.n_heads * (g.key_width + g.value_width)
                if g.kind != "full":
                    out["window_tokens"] = g.window_tokens
                    out["window_is_chunked"] = int(g.kind == "chunked")
            elif g.kind == "mla":
                out["n_mla_layers"] += g.n_layers
                out["mla_width"] += g.n_layers * g.latent_width
                out["mla_fp8_entry_bytes"] = g.fp8_entry_bytes
                out["mla_absorbed_elements"] += g.n_layers * g.absorbed_elements
                up_projected = g.absorbed_elements / MLA_LATENT + self.n_heads * MLA_ROTARY
                heads = up_projected if g.absorbed_elements else self.n_heads * MLA_KEY_AND_VALUE
                out["attention_elements"] += g.n_layers * heads
            elif g.kind == "compressed":
                out["n_other_layers"] += g.n_layers
                out["other_elements_per_token"] += g.n_layers * g.elements_per_token
                kind = "indexed" if g.index_width else "pooled"
                out[f"n_{kind}_layers"] += g.n_layers
                out[f"{kind}_entry_tokens"] = g.tokens_per_entry
                out["packed_entry_bytes"] = g.fp8_entry_bytes
                out["index_entry_bytes"] = max(out["index_entry_bytes"], g.index_entry_bytes)
            elif g.kind == "indexer":
                out["other_bytes_per_token"] += g.n_layers * g.entry_bytes
                out["side_blocks"] += g.side_blocks
            elif g.kind == "recurrent":
                out["n_state_layers"] += g.n_layers
                out["conv_bytes_per_state_layer"] = g.conv_elements * CONV_ELEMENT_BYTES
                out["state_elements_per_layer"] = g.state_elements
                out["state_element_bytes"] = int(DTYPES[g.state_dtype].other_bytes)
                out["state_checkpoint_tokens"] = g.checkpoint_tokens
        if latents := out["n_mla_layers"]:
            mean = out["mla_width"] / latents
            out["mla_width"] = int(mean) if mean.is_integer() else mean
        return {
            "n_layers": self.n_layers,
            "n_heads": self.n_heads,
            "hidden_size": self.hidden_size,
            "vocab_size": self.vocab_size,
            "intermediate_size": self.intermediate_size or 0,
            "ffn_matrices": 3 if self.gated_ffn else 2,
            "n_experts": self.experts.n if self.experts else 0,
            "experts_per_token": self.experts.top_k if self.experts else 0,
            "expert_intermediate_size": expert_width if self.experts else 0,
            **(self.encoder.shape(self.hidden_size) if self.encoder else NO_ENCODER),
            "rope_table_elements": self.rope_table_elements,
            "max_context_tokens": self.max_context_tokens or 0,
            **out,
            "n_params": p.total,
            "n_params_active": p.active,
            "n_params_quantizable": p.body + p.routed_experts - p.unquantized,
            "n_params_copied": p.copied,
            "n_params_mtp": p.mtp_extra,
            "n_params_routed": p.routed_experts,
            "n_params_embedding": p.embedding,
            "n_params_lm_head": p.lm_head,
            "n_params_per_layer_embedding": p.per_layer_embedding,
        }

    def stage_shares(self) -> dict[str, float]:
        """The largest share of the layers' parameters, and of the layers with a cache, on one pipeline stage, by number
        of stages; 0 where all layers are alike. The two may be of different stages, so that no pool is overestimated.

        Source: vLLM get_pp_indices: equal layers per stage, the remainder on the last but one and those before it.
        """
        layers = [(run.params, run.caches) for run in self.layers_in_order for _ in range(run.n)]
        out: dict[str, float] = {}
        for stages in STAGES_IN_ORDER.values():
            per_stage, rest = divmod(len(layers), stages)
            sizes = [per_stage + (0 < stages - 1 - i <= rest) for i in range(stages)]
            ends = [sum(sizes[: i + 1]) for i in range(stages)]
            parts = [layers[end - size : end] for size, end in zip(sizes, ends, strict=True)]
            for i, name in enumerate(("weights", "cache")):
                total = sum(layer[i] for layer in layers)
                out[f"{name}_share_of_{stages}"] = max(sum(layer[i] for layer in part) for part in parts) / (total or 1)
        return out

    @property
    def own_checkpoints(self) -> list[Checkpoint]:
        """The known checkpoints of the model's own weights, without those of other weights of its architecture."""
        if self.sized_as is None:
            return [stored for stored in self.checkpoints if stored.of is None]
        return [stored for stored in self.checkpoints if stored.of is not None and stored.of == self.hf_id]

    def checkpoint(self, weight_dtype: str) -> Checkpoint | None:
        """The preferred checkpoint of the model's own weights in that precision; None where none is known."""
        return self._first(self.own_checkpoints, weight_dtype)

    @property
    def checkpoint_ids(self) -> dict[str, str]:
        """The id of the preferred checkpoint by precision, for launch commands and ways to pay less."""
        dtypes = dict.fromkeys(checkpoint.weight_dtype for checkpoint in reversed(self.own_checkpoints))
        return {dtype: stored.hf_id for dtype in dtypes if (stored := self.checkpoint(dtype)) and stored.hf_id}

    def _first(self, checkpoints: Iterable[Checkpoint], weight_dtype: str) -> Checkpoint | None:
        """The preferred checkpoint in that precision: first those that do not change the KV cache's precision, then the
        vendor's own before NVIDIA's, Red Hat's and others."""

        def rank(checkpoint: Checkpoint) -> tuple[bool, int]:
            order = ((self.hf_id or "/").split("/")[0], "nvidia", "RedHatAI")
            owner = checkpoint.publisher
            place = len(order) + (owner is None) if owner not in order else order.index(owner)
            return checkpoint.kv_cache_dtype is not None, place

        return min((c for c in checkpoints if c.weight_dtype == weight_dtype), key=rank, default=None)

    def checkpoint_bytes(self, weight_dtype: str) -> int:
        """The size in bytes of the model's checkpoint in that precision, else of the entry's, which has the same shape;
        0 where none is known."""
        of_entry = (checkpoint for checkpoint in self.checkpoints if checkpoint.of is None)
        checkpoint = self.checkpoint(weight_dtype) or self._first(of_entry, weight_dtype)
        return checkpoint.size_bytes if checkpoint else 0

    def license_of(self, checkpoint: Checkpoint) -> str | None:
        """The licence of a checkpoint: its own, or the model's if both have the same publisher; None if unknown."""
        is_own = self.hf_id is not None and checkpoint.publisher == self.hf_id.split("/")[0]
        return checkpoint.license or (self.license if is_own else None)
