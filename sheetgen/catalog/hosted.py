"""The schema of hosted.yaml, the prices of hosts of open models per million tokens; and the models that hosts' names
mean."""

import datetime
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from sheetgen.catalog.base import Count, Date, DtypeName, Entry, Id, Label, Loc, Many, Problem, Some, Text, first_day
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import SPARE_WORDS, Model, stem, without_precision
from sheetgen.errors import CatalogError, did_you_mean, shown

MOST_USD_PER_MILLION = 1_000.0  # ten times what the dearest host of an open model asks; a wrong unit is beyond it
PerMillion = Annotated[float, Field(gt=0, le=MOST_USD_PER_MILLION)]


class HostedPrice(Entry):
    """One host's price of a model in USD per million tokens, as read on `read_on` (None: the file's).

    `name` is the host's own name of the model; `precision` is set only where that name states one. Without
    `cached_usd_per_million` a cached prompt token costs as much as any other. `max_input_tokens` is the longest prompt
    that the host states, if any. From `deprecation_date` on the host no longer serves the model.
    """

    host: Id
    name: Label
    precision: DtypeName | None = None
    input_usd_per_million: PerMillion
    cached_usd_per_million: PerMillion | None = None
    output_usd_per_million: PerMillion
    max_input_tokens: Count | None = None
    source: Text | None = None
    deprecation_date: Date | None = None
    read_on: Date | None = None

    def problems(self) -> Iterator[Problem]:
        cached = self.cached_usd_per_million
        if cached is not None and cached > self.input_usd_per_million:
            dearer = f"{cached:g} is more than input_usd_per_million, {self.input_usd_per_million:g}"
            yield ("cached_usd_per_million",), f"cached_usd_per_million of {dearer}. Leave it out, or correct it"

    def takes(self, input_tokens: float) -> bool:
        """True if the host accepts a prompt of that length, as far as it states a limit."""
        return self.max_input_tokens is None or self.max_input_tokens >= input_tokens


class Host(Entry):
    """A host, and its names in price lists. From `closed_on` on it sells no tokens, even if lists still have it."""

    id: Id
    name: Label
    providers: Some[Label]
    closed_on: Date | None = None
    closed_source: Text | None = None


class HostedModel(Entry):
    model: Id
    prices: Some[HostedPrice]


class AlsoCalled(Entry):
    """A hosts' name, as `name_key` reads it, of a model none of whose own names reads like it."""

    key: Annotated[str, Field(pattern=r"^[a-z0-9]{1,100}$")]
    model: Id


class OtherWeights(Entry):
    """A name in price lists that reads like a model of the catalogs but is another; `what` says which."""

    name: Label
    what: Text


class HostedFile(Entry):
    file_name: ClassVar[str] = "hosted.yaml"
    read_on: Date
    origin: Label
    license: Label | None = None
    hosts: Some[Host]
    also_called: Many[AlsoCalled] = ()
    other_weights: Many[OtherWeights] = ()
    models: Many[HostedModel] = ()

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("hosts", "id")
        yield from self.twice("models", "model")
        yield from self.twice("also_called", "key")
        hosts = {host.id: host for host in self.hosts}
        for i, model in enumerate(self.models):
            for k, price in enumerate(model.prices):
                row, host = ("models", i, "prices", k), hosts.get(price.host)
                if host is None:
                    unlisted = f"host is {price.host}, which is not among hosts.{did_you_mean(price.host, hosts)}"
                    yield (*row, "host"), unlisted.removesuffix(".")
                elif host.closed_on:
                    yield (*row, "host"), f"host is {price.host}, which closed on {host.closed_on}. Take the price out"
                if is_retired(price, first_day(self.day_of(price))):
                    retired = f"deprecation_date {price.deprecation_date} is not after {self.day_of(price)}"
                    yield (*row, "deprecation_date"), f"{retired}, when the price was read. Take the price out"

    def of(self, model: str) -> tuple[HostedPrice, ...]:
        """The prices of a model of the catalogs; empty where nobody hosts it."""
        return next((hosted.prices for hosted in self.models if hosted.model == model), ())

    def live(self, model: str, as_of: datetime.date, most_days: float) -> tuple[HostedPrice, ...]:
        """The prices of a model that an answer of the day `as_of` may cite: each has a source page, was read at most
        `most_days` before, and is not retired by then."""
        return tuple(price for price in self.of(model) if self._is_live(price, as_of, most_days))

    def _is_live(self, price: HostedPrice, as_of: datetime.date, most_days: float) -> bool:
        age = as_of - datetime.date.fromisoformat(first_day(self.day_of(price)))
        return bool(price.source) and age.days <= most_days and not is_retired(price, as_of.isoformat())

    def day_of(self, price: HostedPrice) -> str:
        """The day on which a price was read."""
        return price.read_on or self.read_on

    def host_name(self, host: str) -> str:
        return next(entry.name for entry in self.hosts if entry.id == host)


def is_retired(price: HostedPrice, day: str) -> bool:
    """True if the host no longer serves the model at that price on a day."""
    return price.deprecation_date is not None and first_day(price.deprecation_date) <= day


def hosted_file(catalog: Catalog) -> HostedFile:
    """hosted.yaml. Raises CatalogError with every problem of the file, unknown models among them."""
    file = catalog.file(HostedFile)

    def place_of(loc: Loc) -> str:  # the file is read once more only to say where a fault is
        return catalog.read_document(HostedFile.file_name).at(loc)

    if faults := list(model_faults(file, catalog.model_names, place_of)):
        raise CatalogError(*faults)
    return file


def model_faults(file: HostedFile, model_names: Collection[str], place_of: Callable[[Loc], str]) -> Iterator[str]:
    """A sentence with its location for every model of the file that is not in `model_names`."""
    named: list[tuple[Loc, str]] = [(("models", i, "model"), hosted.model) for i, hosted in enumerate(file.models)]
    named += [(("also_called", i, "model"), alias.model) for i, alias in enumerate(file.also_called)]
    for loc, model in named:
        if model not in model_names:
            near = did_you_mean(model, model_names)
            yield f"{place_of(loc)}: model is {model!r}, which is not in catalogs/models.{near}"


def name_faults(file: HostedFile, models: Iterable[Model], place_of: Callable[[Loc], str]) -> Iterator[str]:
    """A sentence with its location for every price listed under another model than its name means."""
    meant = models_by_key(models, file.also_called)
    for i, hosted in enumerate(file.models):
        for k, price in enumerate(hosted.prices):
            key = name_key(price.name)[0]
            if (model := meant.get(key)) != hosted.model:
                means = f"means {model or 'no model'}, not {hosted.model}"
                mend = f"Take it out, or add {{key: {key}, model: {hosted.model}}} to also_called."
                yield f"{place_of(('models', i, 'prices', k, 'name'))}: name {shown(price.name)} {means}. {mend}"


_VENDORS = "ai21|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|zai"
_LEADING = re.compile(rf"^((us|eu|in|global)\.)?({_VENDORS})\.|^(databricks|fw|zai|nvidia)-")
_REVISION = re.compile(r"-(v[1-9][0-9]*|[0-9]+):[0-9]+$|@[0-9]+$")  # a revision of the service, not of the model
_SERVED_AS = re.compile(r"-(turbo|fast|basic|maas)$")  # the same model, served faster or at an unstated precision


def name_key(name: str) -> tuple[str, str | None]:
    """A host's name of a model as a key for comparison, and the precision that it states, if any.

    `fireworks_ai/accounts/fireworks/models/llama-v3p1-70b-instruct`, `us.meta.llama3-1-70b-instruct-v1:0` and
    `llama3.1-70b-instruct-fp8` all read `llama3170b`, the last one fp8.
    """
    last = _REVISION.sub("", name.strip().lower().rsplit("/", 1)[-1])
    last = _LEADING.sub("", last.replace("v0:", "v0."))
    last = re.sub(r"(?<=[0-9])p(?=[0-9])", ".", last)
    precision = None
    while (shorter := _SERVED_AS.sub("", last)) != last or (parted := without_precision(last)):
        if shorter == last and parted:
            shorter, precision = parted
        last = shorter
    last = re.sub(r"^(llama|qwen)-v(?=[0-9])", r"\1", last.removeprefix("nvidia-"))
    return re.sub(r"[^a-z0-9]", "", "".join(p for p in last.split("-") if p not in SPARE_WORDS)), precision


def models_by_key(models: Iterable[Model], also_called: Iterable[AlsoCalled]) -> dict[str, str]:
    """The model id by `name_key` of its id, its Hugging Face name, and the other weights of its architecture
    (DeepSeek-R1-0528), which have ids of their own; without keys of several models, and without the short aliases.
    """
    own: dict[str, set[str]] = defaultdict(set)
    others: dict[str, set[str]] = defaultdict(set)
    for model in models:
        for name in filter(None, (model.id, model.hf_id)):
            own[name_key(name)[0]].add(model.id)
        for name in model.same_architecture:
            if model.weights_named(name):
                others[name_key(name)[0]].add(stem(name))
    meant = {key: ids for key, ids in others.items() if key not in own} | own
    return {key: next(iter(ids)) for key, ids in meant.items() if len(ids) == 1} | {
        alias.key: alias.model for alias in also_called
    }
