"""The registry of scalar functions and operators: one entry each, in one place.

An entry says everything: which argument types it takes and what it returns, what it does to NULL, its plain Python body
(the meaning, and what kernels compile for BOOLEAN, integer and DOUBLE values), the name of its kernel form where the
body cannot be compiled (strings, decimals, bodies that can fail), its Spark SQL text, and examples, which are the
documentation and the test on all three backends.

The binder asks `cq.lang.functions.resolve`. Operators and functions with their own syntax in SQL are entries like any
other: binary operators by their sign, unary minus `negate`, NOT `not`, LIKE `like`, IS [NOT] DISTINCT FROM by these
words in lower case, EXTRACT by `EXTRACT_PARTS`, DATE_TRUNC by `TRUNC_UNITS`. AND, OR, IS NULL, CASE, COALESCE and CAST
are expressions of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from inspect import cleandoc
from typing import Any, TypeVar

from cq.entries import refuse
from cq.errors import CODES, NOWHERE
from cq.lang.types import DataType
from cq.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Signature:
    """Argument types after implicit conversion, and the type of the result."""

    params: tuple[DataType, ...]
    returns: DataType


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a function does not take its arguments: a code of `cq.errors.CODES`, the cause, a way out.

    argument: the one that is wrong whatever the others are; None: their types do not go together.
    """

    code: str
    message: str
    help: str = ""
    argument: int | None = None


Constants = tuple[Any, ...]
"""The values of those arguments that are literals, None for the others (and for NULL)."""

SignatureRule = Callable[[tuple[DataType, ...], Constants], Signature | Refusal | None]
"""Argument types as written, and constants -> the signature; a Refusal, or None if the types are not accepted."""


class Failure(Exception):
    """A body has no result for these values: raise a data error with this code at the row's place.

    Callers fill in what they know: `span`, the expression; `place`, the window and group; `met`, the text after the
    place if the row has met another one.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.span = NOWHERE
        self.place = ""
        self.met = ""


class Compares(Enum):
    """How a function compares its two arguments, by its sign."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="

    @property
    def turned(self) -> Compares:
        """The equivalent comparison with its sides swapped."""
        return _TURNED.get(self, self)


_TURNED = {
    Compares.LESS: Compares.GREATER,
    Compares.LESS_EQUAL: Compares.GREATER_EQUAL,
    Compares.GREATER: Compares.LESS,
    Compares.GREATER_EQUAL: Compares.LESS_EQUAL,
}


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """One scalar function.

    name: as written in SQL, lower case; operators by their sign (`+`, `=`, `||`).  shape: its arguments, for people.
    rule: which arguments it takes; ask `signature`, or `resolve`, which also knows the other entries with a name.
    body: called with non-null values of `Signature.params`, or, when `handles_null`, with None for NULL; with
    `typed` the first argument is the Signature. Raises `Failure` with one of `fails`.
    native: the kernel form in cq/codegen; empty when the body itself is compiled (then it and the functions it calls
    use only integers, doubles, booleans, and of `math` what cq/codegen/expressions/inlining.py has an op for).
    may_be_null: whether the result can be NULL for non-null arguments.  never_null: it never is.
    lists: the result is the array of the arguments.  no_null_inside: the result is an array without NULL elements.
    walked: the result is the pieces of the first argument between occurrences of the second; it cannot fail, and UNNEST
    walks the first argument without building an array.
    spark: text with {0}, {1}, … for the arguments, or a function of the signature and their texts.
    spark_literals: literal arguments, by index, and the functions that convert their values for Spark.
    exact: types for which no value fails although `fails` is not empty (DOUBLE + DOUBLE).
    settled: whether no value fails beside these literal arguments, although `fails` is not empty (x LIKE 'a%', x % 2).
    compares: how it compares its arguments, if that is all it does.
    examples: `expression = value` in SQL text, e.g. "abs(-3) = 3"; `error CQ0705` if there is no value.
    """

    name: str
    shape: str
    rule: SignatureRule
    body: Callable[..., object]
    doc: str
    spark: str | Callable[[Signature, tuple[str, ...]], str]
    native: str = ""
    typed: bool = False
    handles_null: bool = False
    may_be_null: bool = False
    never_null: bool = False
    fails: tuple[str, ...] = ()
    exact: Callable[[Signature], bool] | None = None
    settled: Callable[[Signature, Constants], bool] | None = None
    examples: tuple[str, ...] = ()
    spark_literals: Mapping[int, Callable[[str], str]] = field(default_factory=dict)
    lists: bool = False
    walked: bool = False
    no_null_inside: bool = False
    compares: Compares | None = None

    @property
    def registry_key(self) -> str:
        """The value for plan hashes: the name stands for the entry."""
        return f"fn:{self.name}"

    def signature(self, types: Sequence[DataType], constants: Sequence[Any] = ()) -> Signature | None:
        """The entry's signature for arguments of these types; None when it does not take them."""
        found = self.rule(tuple(types), tuple(constants) or (None,) * len(types))
        return found if isinstance(found, Signature) else None

    def can_fail(self, signature: Signature, constants: Constants) -> bool:
        """Whether some values of these types end in a data error, beside the arguments that are literals."""
        if not self.fails or (self.exact is not None and self.exact(signature)):
            return False
        return self.settled is None or not self.settled(signature, constants)

    def nullable(self, arguments: Sequence[bool]) -> bool:
        """Whether the result may be NULL, given which arguments may be."""
        if self.never_null:
            return False
        if self.handles_null and not self.may_be_null:
            return all(arguments)  # GREATEST, LEAST: NULL only if everything is
        return self.may_be_null or any(arguments)

    def spark_text(self, signature: Signature, arguments: Sequence[str]) -> str:
        """The call in Spark SQL, with the texts of its arguments."""
        if callable(self.spark):
            return self.spark(signature, tuple(arguments))
        return self.spark.format(*arguments)


SCALARS: dict[str, Scalar] = {}
ALIASES: dict[str, str] = {}  # another accepted spelling -> the name of the entry
OVERLOADS: dict[str, tuple[str, ...]] = {}  # a name -> further entries that take other types under it

# EXTRACT(part FROM x) -> the entry that computes it; the plural of each is accepted too
EXTRACT_PARTS: dict[str, str] = {}
# DATE_TRUNC('unit', x) -> the entry that computes it
TRUNC_UNITS: dict[str, str] = {}
# entry that makes a TIMESTAMP of a count since 1970 -> microseconds per unit of the count
EPOCH_UNITS = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1_000, "timestamp_micros": 1}
COUNTS_OF_TIMES = {f"unix_{name.removeprefix('timestamp_')}": name for name in EPOCH_UNITS}  # -> its inverse


def register(entry: Scalar, *aliases: str) -> Scalar:
    """Add an entry and its other spellings, or raise BadEntry; a name is taken once."""
    taken = [f"there is another function {n}" for n in (entry.name, *aliases) if n in SCALARS or n in ALIASES]
    refuse(f"function {entry.name}", [*_problems(entry), *taken])
    SCALARS[entry.name] = entry
    ALIASES.update(dict.fromkeys(aliases, entry.name))
    return entry


def undocumented(doc: str, shape: str, examples: Sequence[str], fails: Sequence[str]) -> Iterator[str]:
    """What the documentation of a function or an aggregate lacks, and where it contradicts the entry."""
    if not doc or not shape:
        yield f"has no {'shape' if doc else 'docstring'}"
    if len(examples) < 4 or not any("null" in e for e in examples):
        yield "has fewer than four examples, or none with NULL"
    yield from (f"its example {e} is not 'expression = value'" for e in examples if " = " not in e)
    yield from (f"fails with {code}, which is no code of cq.errors" for code in fails if code not in CODES)
    shown = (e.rpartition(" = error ")[2] for e in examples if " = error " in e)
    yield from (f"an example fails with {code}, and `fails` does not name it" for code in shown if code not in fails)


def contradictory(entry: Any) -> Iterator[str]:
    """Impossible claims of a function or an aggregate about NULL and failures."""
    if entry.never_null and entry.may_be_null:
        yield "is never_null and may_be_null"
    if entry.exact and not entry.fails:
        yield "says for which types it is exact, and never fails"


def _problems(entry: Scalar) -> Iterator[str]:
    yield from undocumented(entry.doc, entry.shape, entry.examples, entry.fails)
    yield from contradictory(entry)
    if entry.settled and not entry.fails:
        yield "says which literals settle that it does not fail, and never fails"
    beyond = [n for n in _BEYOND_BODIES if getattr(entry, n)]
    if beyond and not entry.native:
        yield f"is {', '.join(beyond)} and names no kernel form: its body cannot be compiled as it is"
    if entry.never_null and not entry.handles_null:
        yield "is never_null and does not handle NULL: then it is NULL for one"
    if entry.walked and entry.fails:
        yield "is walked and fails"
    if isinstance(entry.spark, str) and "{" not in entry.spark and not entry.shape.endswith("()"):
        yield "its Spark text names no argument, such as {0}"


_BEYOND_BODIES = ("typed", "handles_null", "may_be_null", "fails", "lists", "walked", "no_null_inside")

Body = TypeVar("Body", bound=Callable[..., object])


def scalar(
    name: str,
    shape: str,
    rule: SignatureRule,
    *,
    spark: str | Callable[[Signature, tuple[str, ...]], str],
    examples: Sequence[str],
    native: str = "",
    typed: bool = False,
    handles_null: bool = False,
    may_be_null: bool = False,
    never_null: bool = False,
    fails: Sequence[str] = (),
    exact: Callable[[Signature], bool] | None = None,
    settled: Callable[[Signature, Constants], bool] | None = None,
    aliases: Sequence[str] = (),
    spark_literals: Mapping[int, Callable[[str], str]] | None = None,
    lists: bool = False,
    walked: bool = False,
    no_null_inside: bool = False,
    compares: Compares | None = None,
) -> Callable[[Body], Body]:
    """Register the decorated function as the body of an entry; its docstring is the entry's."""

    def add(body: Body) -> Body:
        entry = Scalar(
            name,
            shape,
            rule,
            body,
            cleandoc(body.__doc__ or ""),
            spark,
            native=native,
            typed=typed,
            handles_null=handles_null,
            may_be_null=may_be_null,
            never_null=never_null,
            fails=tuple(fails),
            exact=exact,
            settled=settled,
            examples=tuple(examples),
            spark_literals=spark_literals or {},
            lists=lists,
            walked=walked,
            no_null_inside=no_null_inside,
            compares=compares,
        )
        register(entry, *aliases)
        return body

    return add
