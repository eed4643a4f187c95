"""Several files in one stream: by default they have the columns of the first one that is not empty, and a file that
lacks a column is refused before anything runs. With `union_by_name` they have the columns of all files, and a column
that a file lacks is NULL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import pyarrow as pa

from cq.connectors.conversion import match_columns
from cq.connectors.protocol import ColumnNames
from cq.connectors.registry import BY_NAME, option
from cq.connectors.rules import Rules
from cq.errors import DataError, Diagnostic
from cq.lang.schema import Field, Unheld
from cq.lang.types import DOUBLE, TIMESTAMP, VARCHAR, DataType, Kind
from cq.records import dataclass, replace

Columns = tuple[Field | Unheld, ...]
_WHOLE = [Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT]


def unites(options: Mapping[str, str]) -> bool:
    """Whether the columns of a stream are those of all its files."""
    return option(options, "union_by_name") == "true"


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of one file. without_values: those without values, whose type is unknown.  guessed: from text."""

    path: str
    columns: Columns
    without_values: Collection[str] = ()
    guessed: bool = False


def of_first(first: FileColumns, others: Sequence[FileColumns]) -> Columns:
    """The columns of the first file, and, marked as unreadable, those that only others have."""
    seen = ColumnNames([c.name for c in first.columns])
    only: dict[str, Unheld] = {}
    for other in others:
        for c in other.columns:
            if seen.find(c.name) is None:
                only.setdefault(c.name, Unheld(c.name, str(c.type), other.path))
    return (*first.columns, *only.values())


def of_all(files: Sequence[FileColumns]) -> Columns:
    """The columns of all files, in order of first appearance; all of them may be NULL.

    No query can read a column that two files have in types without a common type.
    """
    found: dict[str, tuple[Field | Unheld, FileColumns]] = {}
    folded: dict[str, str] = {}
    for file in files:
        for c in file.columns:
            name = c.name if c.name in found else folded.setdefault(c.name.lower(), c.name)
            before, of = found.setdefault(name, (c, file))
            if c.name in file.without_values or isinstance(before, Unheld):
                continue
            if before.name in of.without_values or isinstance(c, Unheld):
                found[name] = (replace(c, name=name), file)
                continue
            type_ = _common(before.type, c.type, of.guessed and file.guessed)
            differ = Unheld(name, f"{before.type} in {of.path} and {c.type} in {file.path}")
            found[name] = (differ if type_ is None else replace(before, type=type_), of)
    return tuple(replace(c, nullable=True) if isinstance(c, Field) else c for c, _ in found.values())


def _common(a: DataType, b: DataType, guessed: bool) -> DataType | None:
    """The type of a column that has type `a` in one file and type `b` in another; None if there is none.

    guessed: from text, of which every value is a VARCHAR.
    """
    kinds = {a.kind, b.kind}
    if a == b:
        return a
    if kinds <= set(_WHOLE):
        return max(a, b, key=lambda type_: _WHOLE.index(type_.kind))
    if kinds <= {*_WHOLE, Kind.REAL, Kind.DOUBLE}:
        return DOUBLE
    if guessed:
        return TIMESTAMP if kinds == {Kind.DATE, Kind.TIMESTAMP} else VARCHAR
    return None


Lacking = dict[str, tuple[Rules, tuple[int, ...]]]
"""By path, how to read a file that lacks columns of its stream, and the columns it has."""


def lacking(
    said: Iterable[tuple[str, pa.Schema | list[str] | None]], rules: Rules, options: Mapping[str, str]
) -> Lacking:
    """How to handle columns that some files of a stream lack.

    said: by path, the columns of each file; None if unknown. CQ0603 if the columns are not those of all files and a
    file lacks one, if a column that must have a value is lacking, if no file has it, or if a file has it in a type that
    cannot be read as declared.
    """
    found: Lacking = {}
    somewhere: set[int] = set()
    first = True
    for path, columns in said:
        if columns is None:
            somewhere.update(range(len(rules.fields)))
            continue
        names = columns.names if isinstance(columns, pa.Schema) else columns
        there = ColumnNames(names)
        has = tuple(i for i, f in enumerate(rules.fields) if there.find(f.name) is not None)
        somewhere.update(has)
        if not first or unites(options):
            if len(has) < len(rules.fields):
                found[path] = (_rules_of(path, names, rules, has, options), has)
            if isinstance(columns, pa.Schema):
                match_columns(path, columns, [rules.fields[i] for i in has])
        first = False
    nowhere = [f.name for i, f in enumerate(rules.fields) if i not in somewhere]
    if nowhere and unites(options):
        raise DataError(
            Diagnostic("CQ0603", f"no file has the column {nowhere[0]!r}", help=("declare only columns that exist",))
        )
    return found


def _rules_of(path: str, names: Sequence[str], rules: Rules, has: tuple[int, ...], options: Mapping[str, str]) -> Rules:
    """The rules of a file that has only these columns of its stream."""
    listing = "its columns: " + (", ".join(names[:50]) or "none")
    for i in sorted(set(range(len(rules.fields))) - set(has)):
        name = rules.fields[i].name
        if not unites(options):
            cause = f"{path} has no column {name!r}, which earlier files have"
            raise DataError(Diagnostic("CQ0603", cause, help=(f"to read NULL there, {BY_NAME}", listing)))
        if rules.demands_value(i):
            cause = (
                f"{path} has no column {name!r}, which {'gives the event time' if rules.is_time(i) else 'is NOT NULL'}"
            )
            raise DataError(Diagnostic("CQ0603", cause, help=("leave the file out of the pattern", listing)))
    time = rules.time if rules.time is None else replace(rules.time, column=has.index(rules.time.column))
    fields = tuple(rules.fields[i] for i in has)
    return replace(rules, fields=fields, wanted=tuple(has.index(i) for i in rules.wanted if i in has), time=time)
