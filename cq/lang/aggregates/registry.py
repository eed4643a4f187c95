"""The registry of aggregate functions: one entry each.

An aggregate is a fold: `zero`, `add` a row's values, `merge` two partial results (left before right), `result`. Rows
with a NULL argument are skipped and `add` never sees NULL, unless the entry keeps NULL. COUNT(*) has no argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

from cq.entries import refuse
from cq.lang.functions.registry import Signature, SignatureRule, contradictory, undocumented
from cq.lang.types import DataType
from cq.records import dataclass

State = Any  # an immutable Python value


@dataclass(frozen=True, slots=True)
class ConstantArgument:
    """A constant after the arguments of a call. fits: which values it may have.  what: the same, for people."""

    type: DataType
    fits: Callable[[Any], bool]
    what: str


class Keeps(Enum):
    """What an aggregate keeps of a group's rows."""

    WORDS = "a few words that are merged"
    SKETCH = "many words that are merged"
    VALUES = "all values, in lists that are merged"
    VALUES_IN_ORDER = "all values as they came, which are not merged"
    OBJECT = "an object of Python, which is not merged"


class Grows(Enum):
    """How one more value changes a result, for aggregates that need to remember only their result."""

    COUNT = "one more"
    SUM = "the sum of both"
    LEAST = "the lesser of both"
    GREATEST = "the greater of both"


class OfArray(Enum):
    """How a call with ORDER BY or DISTINCT gets its result from the array of its values."""

    ITSELF = "the array"
    JOINED = "its elements as one text"
    FIRST = "its first element"
    LAST = "its last element"


@dataclass(frozen=True, slots=True, eq=False)
class AggregateFunction:
    """One aggregate function.

    rule: which arguments it takes; ask `signature`, or `resolve` to get the reason too.
    zero: the state of no rows.  add(signature, state, *values) -> state.  merge(signature, left, right) -> state.
    empty(state): whether no row was added, in which case the result is NULL unless `never_null`; or too few rows, if
    the entry `may_be_null`.
    result(signature, state, *options) -> value; raises `cq.lang.functions.Failure` when it does not fit its type.
    exact_merge(signature): whether merge(add…, add…) equals adding one by one in any order, so that partial tables of
    several workers may be merged.
    idempotent: adding a value again changes nothing, so DISTINCT does not either.
    exact: types for which no result fails although `fails` is not empty.
    keeps: what its state holds.
    native: the kernel form in cq/codegen/state/aggregates.py.
    keeps_null: `add` sees NULL.
    by_position: it depends on which row came first, so `add` gets the row's arrival before the values.
    options: the constants after the arguments.
    within_group: its argument may stand in WITHIN GROUP (ORDER BY …).
    grows: how one more value changes the result; None if the result alone does not determine that.
    of_array: how a call with ORDER BY or DISTINCT gets its result from an array; None if it cannot.
    counts_truth: a BOOLEAN argument counts as 1 or 0.  as_text: an argument of another type is cast to text.
    y_first: of the two arguments, the dependent variable comes first.
    spark: text with {0} for the argument (`1` for COUNT(*)) and {1} after every aggregate for an OVER clause, or a
    function of the signature, these two texts and the options. If it `packs` its arguments, {0} is a struct of them, a
    and b, NULL for a skipped row, and {2} the row's position.
    examples: `sum over 1, 2, null = 3`; `over nothing` for no rows; `corr over (1, 2), (2, 4) = 1e0` of two arguments;
    `quantile_cont(0.5) over 1, 2 = 1.5e0` with options.
    """

    name: str
    shape: str
    rule: SignatureRule
    zero: State
    add: Callable[..., State]
    merge: Callable[[Signature, State, State], State]
    empty: Callable[[State], bool]
    result: Callable[[Signature, State], Any]
    exact_merge: Callable[[Signature], bool]
    doc: str
    spark: str | Callable[..., str]
    native: str
    keeps: Keeps
    never_null: bool = False
    may_be_null: bool = False
    idempotent: bool = False
    keeps_null: bool = False
    by_position: bool = False
    options: tuple[ConstantArgument, ...] = ()
    within_group: bool = False
    grows: Grows | None = None
    of_array: OfArray | None = None
    counts_truth: bool = False
    as_text: bool = False
    y_first: bool = False
    fails: tuple[str, ...] = ()
    exact: Callable[[Signature], bool] | None = None
    examples: tuple[str, ...] = ()

    @property
    def registry_key(self) -> str:
        """The value for plan hashes: the name stands for the entry."""
        return f"agg:{self.name}"

    def signature(self, types: Sequence[DataType]) -> Signature | None:
        """Its signature for arguments of these types; None when it does not take them."""
        found = self.rule(tuple(types), (None,) * len(types))
        return found if isinstance(found, Signature) else None

    @property
    def merges(self) -> bool:
        """Whether panes and sessions may be merged at all."""
        return self.keeps not in {Keeps.VALUES_IN_ORDER, Keeps.OBJECT}

    @property
    def keeps_values(self) -> bool:
        """Whether a group keeps all its values."""
        return self.keeps in {Keeps.VALUES, Keeps.VALUES_IN_ORDER}

    @property
    def slides(self) -> bool:
        """Whether it can aggregate the rows of a frame: there is a state for each row, and states are merged."""
        return self.keeps is Keeps.WORDS

    def can_fail(self, signature: Signature) -> bool:
        """Whether some result of these types fails."""
        return bool(self.fails) and not (self.exact is not None and self.exact(signature))

    def value(self, signature: Signature, state: State, options: Sequence[Any] = ()) -> Any:
        """The result of a state: NULL when nothing was added, unless it is never NULL."""
        return None if self.empty(state) and not self.never_null else self.result(signature, state, *options)

    def packs(self, signature: Signature) -> bool:
        """Whether Spark gets its arguments as one struct."""
        return len(signature.params) > 1 or self.by_position

    def spark_text(
        self, signature: Signature, argument: str, over: str = "", position: str = "", options: Sequence[Any] = ()
    ) -> str:
        """The call in Spark SQL, around the text of its argument: `1` for COUNT(*), `DISTINCT x` for one with DISTINCT.

        over: an OVER clause that makes it a window function, preceded by a space.  position: of a row.
        """
        if callable(self.spark):
            return self.spark(signature, argument, over, *options)
        return self.spark.format(argument, over, position)


AGGREGATES: dict[str, AggregateFunction] = {}
ALIASES: dict[str, str] = {}  # another accepted spelling -> the name of the entry


def register(entry: AggregateFunction, *aliases: str) -> AggregateFunction:
    """Add an entry and its other spellings, or raise BadEntry; a name is taken once."""
    taken = [f"there is another aggregate {n}" for n in (entry.name, *aliases) if n in AGGREGATES or n in ALIASES]
    refuse(f"aggregate {entry.name}", [*_problems(entry), *taken])
    AGGREGATES[entry.name] = entry
    ALIASES.update(dict.fromkeys(aliases, entry.name))
    return entry


def _problems(entry: AggregateFunction) -> Iterator[str]:
    yield from undocumented(entry.doc, entry.shape, entry.examples, entry.fails)
    yield from contradictory(entry)
    if not any("over nothing" in e for e in entry.examples):
        yield "has no example over nothing"
    if not entry.native:
        yield "names no kernel form"
    if entry.grows is not None and not entry.slides:
        yield "its result is all it remembers, and it keeps more than words"
    if entry.grows is not None and entry.idempotent != (entry.grows in {Grows.LEAST, Grows.GREATEST}):
        yield f"is {'' if entry.idempotent else 'not '}idempotent, and grows by {entry.grows.value}"
    text = entry.spark if isinstance(entry.spark, str) else "{0}{2}"
    if "{0}" not in text:
        yield "its Spark text names no argument, {0}"
    if entry.by_position and "{2}" not in text:
        yield "asks which row came first, and its Spark text does not, {2}"
    if entry.options and text is entry.spark:
        yield "has options, and its Spark text takes none"
