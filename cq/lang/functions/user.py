"""User-defined functions: a Python function with SQL types, and its entry for queries.

The Python function is the meaning. It must be pure: the same arguments give the same result, whenever and however often
it is called. Values are passed as Python types (`datetime.date` for DATE, `Decimal` for DECIMAL), and a result must
have the declared type: only an int is converted, to a float, and a Decimal, to its digits.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import inspect
import operator
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from cq.lang.functions.registry import Failure, Scalar
from cq.lang.functions.signatures import fixed
from cq.lang.types import INT64_MAX, INT64_MIN, DataType, Kind, integer_range, round_to_real
from cq.lang.value_text import write_decimal
from cq.records import dataclass, field

SHOWN_CHARACTERS = 200  # of an exception's message
FORM = "user_function"  # the kernel form
USER_FAILURES = ("CQ0705", "CQ0706", "CQ0708")
# the types a function may take and return
USER_KINDS = frozenset(Kind) - {Kind.NULL, Kind.ARRAY, Kind.INTERVAL_MONTH}

_AS_IN_PYTHON = USER_KINDS - {Kind.DATE, Kind.TIMESTAMP, Kind.INTERVAL, Kind.DECIMAL}  # same values in Python
_DAY_0 = datetime.date(1970, 1, 1).toordinal()
_MOMENT_0 = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class PassedType:
    """A parameter or the result: its type, and whether it may be NULL (None)."""

    type: DataType
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.type}{' or NULL' if self.optional else ''}"


class UserFunction:
    """A Python function that queries may call by `name`; calls from Python reach the function itself.

    A NULL for a parameter that is not optional makes the result NULL, and the function is not called. may_be_null: the
    result may be NULL although it handles NULL, or it may return None.
    state: this many of the first parameters are the fields of one tuple, the function's first argument; if it `moves`,
    it returns such a tuple, of these types, instead of `returns`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        parameters: tuple[PassedType, ...],
        returns: PassedType,
        state: int = 0,
        moves: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function, self.name, self.parameters, self.returns = function, name, parameters, returns
        self.state, self.moves = state, moves
        self.results = parameters[:state] if moves else (returns,)
        self.sees_null = any(p.optional for p in parameters)
        self.may_be_null = returns.optional or (self.sees_null and not all(p.optional for p in parameters))
        self.identity = _identity(function, parameters, returns)
        self.entry = UserScalar(
            name,
            f"{name}({', '.join(str(p.type) for p in parameters)})",
            fixed(*(p.type for p in parameters), returns=returns.type),
            self.compute,
            inspect.getdoc(function) or "",
            lambda _, texts: f"{self.spark_name}({', '.join(texts)})",
            native=FORM,
            handles_null=self.sees_null,
            may_be_null=self.may_be_null,
            never_null=self.sees_null and all(p.optional for p in parameters) and not returns.optional,
            fails=USER_FAILURES,
            made_of=self,
        )

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)

    def __repr__(self) -> str:
        return f"<cq function {self.entry.shape} -> {self.returns}>"

    @property
    def spark_name(self) -> str:
        """Its name in a Spark session."""
        return f"cq_{self.name}_{self.identity[:12]}"

    def compute(self, *values: Any) -> Any:
        """The result for physical values (`cq.lang.types.DataType`), as one. `Failure` if there is none."""
        given = []
        for value, slot in zip(values, self.parameters, strict=True):
            if value is None and not slot.optional:
                return None
            plain = value is None or slot.type.kind in _AS_IN_PYTHON
            given.append(value if plain else self._taken(value, slot.type))
        if self.state:
            given = [tuple(given[: self.state]), *given[self.state :]]
        try:
            made = self.function(*given)
        except Exception as error:
            raise Failure(_code(error), f"{self.name}() raised {_said(error)}") from None
        if not self.moves:
            return self._returned(made, self.returns)
        if not isinstance(made, tuple) or len(made) != self.state:
            raise Failure("CQ0708", f"{self.name}() returned no tuple of {self.state} values")
        return tuple(map(self._returned, made, self.results))

    def _taken(self, value: Any, type_: DataType) -> Any:
        try:
            return to_python(value, type_)
        except (OverflowError, ValueError):
            raise Failure("CQ0708", f"{self.name}() takes years from 1 to 9999: Python has no other dates") from None

    def _returned(self, made: Any, slot: PassedType) -> Any:
        if made is None:
            if slot.optional:
                return None
            raise Failure("CQ0708", f"{self.name}() returned None, and its result is declared {slot.type}")
        try:
            return from_python(made, slot.type)
        except OverflowError:
            raise Failure("CQ0705", f"{self.name}() returned a value that {slot.type} cannot hold") from None
        except (TypeError, ValueError):
            kind = type(made).__name__
            raise Failure("CQ0708", f"{self.name}() returned {kind}, which is no {slot.type}") from None


@dataclass(frozen=True, slots=True, eq=False)
class UserScalar(Scalar):
    """The entry of a user-defined function."""

    made_of: UserFunction = field(kw_only=True)

    @property
    def registry_key(self) -> str:
        """Stored state and shared parts of plans identify the function by what it does, as far as its source shows."""
        return f"user:{self.name}:{self.made_of.identity}"


def _identity(function: Callable[..., Any], parameters: tuple[PassedType, ...], returns: PassedType) -> str:
    """A hash of the function's source, or of its code if there is none, and of its types."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        text = repr(function) if code is None else f"{code.co_code!r}{code.co_consts!r}{code.co_names!r}"
    shown = "\0".join([text, *map(str, parameters), str(returns)])
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


def _code(error: Exception) -> str:
    match error:
        case ZeroDivisionError():
            return "CQ0706"
        case OverflowError():
            return "CQ0705"
        case _:
            return "CQ0708"


def _said(error: Exception) -> str:
    """An exception on one line."""
    lines = str(error).splitlines()
    said = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return said if len(said) <= SHOWN_CHARACTERS else said[: SHOWN_CHARACTERS - 1] + "…"


# -- values ------------------------------------------------------------------------------------------------------------


def to_python(value: Any, type_: DataType) -> Any:
    """A physical value as a Python value. OverflowError or ValueError for a time that Python cannot represent."""
    match type_.kind:
        case Kind.DATE:
            return datetime.date.fromordinal(_DAY_0 + value)
        case Kind.TIMESTAMP:
            return _MOMENT_0 + datetime.timedelta(microseconds=value)
        case Kind.INTERVAL:
            return datetime.timedelta(microseconds=value)
        case Kind.DECIMAL:
            return Decimal(write_decimal(value, type_.scale))
        case _:
            return value


def from_python(made: Any, type_: DataType) -> Any:
    """A Python value as a physical one. TypeError or ValueError for one of another type, OverflowError for one too
    large."""
    match type_.kind:
        case Kind.BOOLEAN:
            return _demanded(made, bool)
        case Kind.REAL | Kind.DOUBLE:
            number = float(_demanded(made, float | int))
            return round_to_real(number) if type_.kind is Kind.REAL else number
        case Kind.VARCHAR:
            _demanded(made, str).encode()
            return str(made)
        case Kind.BINARY:
            return bytes(_demanded(made, bytes | bytearray | memoryview))
        case Kind.DATE:
            if isinstance(made, datetime.datetime):
                raise TypeError
            return _demanded(made, datetime.date).toordinal() - _DAY_0
        case Kind.TIMESTAMP:
            if _demanded(made, datetime.datetime).tzinfo is not None:
                raise ValueError
            return (made - _MOMENT_0) // _MICROSECOND
        case Kind.INTERVAL:
            return _within(_demanded(made, datetime.timedelta) // _MICROSECOND, INT64_MIN, INT64_MAX)
        case Kind.DECIMAL:
            return _unscaled(Decimal(_demanded(made, Decimal | int)), type_)
        case _:
            return _within(operator.index(made), *integer_range(type_))


def _demanded(made: Any, kind: Any) -> Any:
    if not isinstance(made, kind):
        raise TypeError
    return made


def _within(number: int, least: int, most: int) -> int:
    if not least <= number <= most:
        raise OverflowError
    return number


def _unscaled(number: Decimal, type_: DataType) -> int:
    """The unscaled value, rounded half up to the type's digits after the point."""
    if not number.is_finite():
        raise ValueError
    if number.adjusted() >= type_.precision - type_.scale:
        raise OverflowError
    unscaled = int(number.scaleb(type_.scale, _EXACT).to_integral_value(ROUND_HALF_UP))
    return _within(unscaled, 1 - 10**type_.precision, 10**type_.precision - 1)
