"""Workloads: named, seeded streams with declared parameters, which are checked before anything is generated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from inspect import signature

import pyarrow as pa

from cq.errors import Diagnostic, UsageError, did_you_mean
from cq.records import dataclass

Value = int | float | bool | str | None
Build = Callable[..., Iterator[pa.RecordBatch]]
MAX_SEED = (1 << 63) - 1
MAX_ROWS = 10**11  # with the interval below, event times stay within 64 bits of microseconds
MAX_INTERVAL_US = 60_000_000


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a workload.

    type: int, float, bool or str.  default: None means "left open", as `doc` explains.  low, high: inclusive bounds of
    a number.  step: a number is a multiple of it.  choices: the allowed words, compared in lower case.
    """

    type: type[int] | type[float] | type[bool] | type[str]
    default: Value
    doc: str
    low: float = -math.inf
    high: float = math.inf
    step: float = 0
    choices: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        """What it lacks, and how it contradicts itself."""
        if not self.doc:
            yield "is not explained"
        if not self._takes_its_default():
            yield f"does not take its default {self.default!r}"

    def _takes_its_default(self) -> bool:
        try:
            return repr(self.read(self.default)) == repr(self.default)  # not 1.0 for 1
        except ValueError:
            return False

    @property
    def allowed(self) -> str:
        """The values allowed, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.type is bool:
            return "true or false"
        noun = {int: "a whole number", float: "a number", str: "text"}[self.type]
        low = "" if self.low == -math.inf else f" from {_shown(self.low)}"
        high = "" if self.high == math.inf else f" to {_shown(self.high)}"
        return noun + low + high + (f" in steps of {self.step:g}" if self.step else "")

    def read(self, value: object) -> Value:
        """The value, in this parameter's type. ValueError if it is not accepted."""
        if value is None and self.default is None:
            return None
        if self.type is bool:
            return _read_bool(value)
        if self.type is str:
            return self._read_word(value)
        number = _read_number(value)
        if self.type is int:
            if isinstance(number, float):
                if not number.is_integer():
                    raise ValueError
                number = int(number)
        else:
            number = float(number)
        if not self.low <= number <= self.high or (self.step and number % self.step):
            raise ValueError
        return number

    def _read_word(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError
        if not self.choices:
            return value
        word = value.strip().lower()
        if word not in self.choices:
            raise ValueError
        return word


def _shown(bound: float) -> str:
    """A bound as a user would type it."""
    return str(int(bound)) if float(bound).is_integer() else str(bound)


def _read_bool(value: object) -> bool:
    word = str(value).strip().lower()
    if word not in {"true", "false"}:
        raise ValueError
    return word == "true"


def _read_number(value: object) -> int | float:
    """An integer when the value is written as one, else a finite double."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    if isinstance(value, str):
        text = value.strip()
        if len(text) > 40 or not text.isascii():
            raise ValueError
        try:
            value = int(text)
        except ValueError:
            value = float(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    return value


SEED = Parameter(int, 1, "same seed, same rows", 0, MAX_SEED)


@dataclass(frozen=True, slots=True)
class Workload:
    """A generator of rows under a name. `build` takes every parameter, checked, by keyword."""

    name: str
    description: str
    schema: pa.Schema
    parameters: Mapping[str, Parameter]
    build: Build

    def problems(self) -> Iterator[str]:
        """What it lacks, and how it contradicts itself."""
        if not self.description:
            yield "is not described"
        for name, parameter in self.parameters.items():
            yield from (f"its parameter {name} {problem}" for problem in parameter.problems())
        taken = signature(self.build).parameters
        yield from (f"`build` does not take its parameter {n}" for n in self.parameters if n not in taken)
        yield from (f"`build` takes {n}, which is no parameter" for n in taken if n not in self.parameters)

    def checked(self, values: Mapping[str, object]) -> dict[str, Value]:
        """Every parameter with its value or default. UsageError names the first that is unknown or out of bounds."""
        for name in values:
            if name not in self.parameters:
                raise UsageError(
                    Diagnostic(
                        "CQ0207",
                        f'workload "{self.name}" has no parameter "{name}"',
                        help=tuple(h for h in (did_you_mean(name, self.parameters), self._listing()) if h),
                    )
                )
        out: dict[str, Value] = {}
        for name, parameter in self.parameters.items():
            given = values.get(name, parameter.default)
            try:
                out[name] = parameter.read(given)
            except ValueError:
                raise UsageError(
                    Diagnostic(
                        "CQ0208",
                        f'workload "{self.name}": {name} cannot be {given!r}',
                        help=(f"{name} takes {parameter.allowed}: {parameter.doc}",),
                    )
                ) from None
        return out

    def generate(self, **parameters: object) -> Iterator[pa.RecordBatch]:
        """Rows in order of arrival as record batches of `schema`; wrong parameters are refused by the call."""
        return self.generate_by(self.build, parameters)

    def generate_by(self, build: Build, parameters: Mapping[str, object]) -> Iterator[pa.RecordBatch]:
        """The same rows, made by `build`: the definition, or a faster twin."""
        return build(**self.checked(parameters))

    def _listing(self) -> str:
        return "parameters: " + ", ".join(self.parameters)
