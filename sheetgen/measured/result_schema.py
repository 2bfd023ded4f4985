"""The parts that the schemas of benchmarks' results share: numbers within bounds, names, and the deployment that a
result states. A schema has the keys that are read; any other key of a file is ignored."""

from __future__ import annotations

import contextlib
import math
import re
from typing import Annotated, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError

from sheetgen.catalog.base import RawRecord, RawValue, first_fault
from sheetgen.errors import ScenarioError

MOST = 1e12  # the largest number read
MOST_NAME = 200  # characters of a name in a file
CACHED = re.compile(r"models--([^/]+?)--([^/]+)")
DIGITS = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def positive_number(value: object) -> float:
    """A number above 0, as a number or as its digits. Raises ValueError."""
    number = float(value) if isinstance(value, str) and DIGITS.fullmatch(value.strip()) else value
    if not isinstance(number, (int, float)) or isinstance(number, bool) or not 0 < number <= MOST:
        raise ValueError("must be a number above 0")
    return number


def whole_number(value: object) -> int:
    """A whole number above 0, as a number or as its digits. Raises ValueError."""
    with contextlib.suppress(ValueError):
        if (number := positive_number(value)) == int(number):
            return int(number)
    raise ValueError("must be a whole number above 0")


def _measured(value: object) -> object:
    """None for NaN, which tools write where they measured nothing."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _rate(value: object) -> object:
    """None for a rate without limit, which tools write as a word or as a number."""
    return None if value in ("inf", math.inf) else value


def _model_name(value: object) -> str | None:
    """A name; None for a blank one. A folder of the Hugging Face cache is its id: models--org--name is org/name."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError("must be text")
    cached = CACHED.search(value[:MOST_NAME])
    return (f"{cached[1]}/{cached[2]}" if cached else value.strip()[:MOST_NAME]) or None


Positive = Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False)]
Number = Annotated[float | None, Field(ge=0, le=MOST, allow_inf_nan=False), BeforeValidator(_measured)]
Rate = Annotated[Number, BeforeValidator(_rate)]
Name = Annotated[str | None, PlainValidator(_model_name)]
Size = Annotated[int | None, PlainValidator(lambda value: None if value is None else whole_number(value))]


class Result(BaseModel):
    """A part of a result."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, populate_by_name=True)


class StatedDeployment(Result):
    """The deployment by a result's own keys, such as those that --metadata of `vllm bench serve` adds."""

    model: Name = None
    gpu: Name = Field(None, validation_alias=AliasChoices("gpu", "gpu_name"))
    engine: Name = None
    weight_dtype: Name = None
    tensor_parallel_size: Size = Field(None, validation_alias=AliasChoices("tensor_parallel_size", "tp"))
    pipeline_parallel_size: Size = Field(None, validation_alias=AliasChoices("pipeline_parallel_size", "pp"))
    data_parallel_size: Size = Field(None, validation_alias=AliasChoices("data_parallel_size", "dp"))

    @property
    def deployment(self) -> RawRecord:
        """The names and sizes that are stated."""
        stated = {name: getattr(self, name) for name in StatedDeployment.model_fields}
        return {name: value for name, value in stated.items() if value is not None}


R = TypeVar("R", bound=Result)


def checked_result(document: RawValue, schema: type[R], source: str) -> R:
    """A document as a schema. Raises ScenarioError with the first key that is wrong, its value and what is allowed."""
    try:
        return schema.model_validate(document)
    except ValidationError as error:
        raise ScenarioError(f"{source}: {first_fault(error, schema)}") from None
