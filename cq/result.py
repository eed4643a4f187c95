"""The result of a run: rows of every output as Arrow, as frames or as dicts, and how they are shown."""

from __future__ import annotations

import html
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from cq.connectors.rowhash import RowHash
from cq.engines.protocol import RunSummary
from cq.errors import Diagnostic, UsageError, did_you_mean, printable

HTML_ROWS = 20  # of a result in a notebook


class Output:
    """The rows of one output, in the order the query defines; NULL is null. Anything that takes Arrow takes it."""

    def __init__(self, name: str, table: pa.Table) -> None:
        self.name, self._table = name, table

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; no copy is made."""
        return self._table

    def to_pandas(self) -> Any:
        """The rows as a pandas frame, every value as it is; UsageError (CQ0604) without pandas.

        A column of integers or BOOLEANs with NULLs is `Int64` (`Int8`, …) or `boolean`, since floats cannot represent
        all BIGINTs; without NULLs it is `int64` or `bool`. Elsewhere NULL is pandas' own: NaN, None, NaT.
        """
        try:
            import pandas
        except ImportError:
            raise _not_installed("pandas") from None
        nullable = {
            **{getattr(pa, f"int{bits}")(): getattr(pandas, f"Int{bits}Dtype")() for bits in (8, 16, 32, 64)},
            pa.bool_(): pandas.BooleanDtype(),
        }
        columns = dict(zip(self._table.column_names, self._table.columns, strict=True))
        apart = {n: c for n, c in columns.items() if c.type in nullable and c.null_count}
        # integers in arrays: pandas would make them floats beside a NULL
        frame = self._table.drop_columns(list(apart)).to_pandas(integer_object_nulls=True)
        for place, name in enumerate(columns):
            if name in apart:
                frame.insert(place, name, apart[name].to_pandas(types_mapper=nullable.get))
        return frame

    def to_polars(self) -> Any:
        """The rows as a polars frame; NULLs stay null. UsageError (CQ0604) without polars."""
        try:
            import polars
        except ImportError:
            raise _not_installed("polars") from None
        return polars.from_arrow(self._table)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts of Python values, NULL as None. UsageError (CQ0605) for a year beyond Python's."""
        try:
            rows: list[dict[str, Any]] = self._table.to_pylist()
        except OverflowError:
            text = f'output "{self.name}" holds a year that Python\'s dates do not: they go from 1 to 9999'
            help = ("take the rows as Arrow, with to_arrow()", "or the times as text: CAST(ts AS VARCHAR)")
            raise UsageError(Diagnostic("CQ0605", text, help=help)) from None
        return rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    def __str__(self) -> str:
        """The first rows as a table."""
        from cq.connectors.sinks.terminal import Screen, Table

        shown = io.StringIO()
        table = Table(self.name, self._table.column_names, Screen(shown, colour=False), HTML_ROWS, "")
        for batch in self._table.to_batches():
            table.write(batch)
        table.close()
        return shown.getvalue().rstrip("\n")

    def __repr__(self) -> str:
        return f"<cq.Output {self.name}: {len(self):,} rows of {', '.join(self._table.column_names)}>"

    def _repr_html_(self) -> str:
        from cq.connectors.sinks.cell_text import column_text

        head = self._table.slice(0, HTML_ROWS).combine_chunks()
        columns = [column_text(c.combine_chunks()).to_pylist() for c in head.columns] if len(head) else []
        names = "".join(f"<th>{html.escape(printable(n))}</th>" for n in head.column_names)
        rows = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in zip(*columns, strict=True))
        more = f"<p>{len(self) - HTML_ROWS:,} more rows</p>" if len(self) > HTML_ROWS else ""
        return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>{more}"


class Hashes(Mapping[str, str]):
    """The hash of every output; a table in memory is hashed when its hash is first needed."""

    def __init__(self, known: Mapping[str, str], tables: Mapping[str, pa.Table]) -> None:
        self._known, self._tables = dict(known), dict(tables)

    def __getitem__(self, name: str) -> str:
        if name not in self._known:
            hashing = RowHash()
            for batch in self._tables[name].to_batches():
                hashing.update(batch)
            self._known[name] = hashing.digest
            del self._tables[name]
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._known, *self._tables)))

    def __len__(self) -> int:
        return len(set(self._known) | set(self._tables))

    def __repr__(self) -> str:
        return repr(dict(self))


def _not_installed(package: str) -> UsageError:
    return UsageError(Diagnostic("CQ0604", f"{package} is not installed", help=(f"pip install {package}",)))


class KeptTable(Output):
    """The rows of a table of triggers at a moment of a run, by key: as left by a loop over all earlier events.

    events: how many rows of each stream that is.
    """

    def __init__(self, name: str, table: pa.Table, events: Mapping[str, int]) -> None:
        super().__init__(name, table)
        self.events = dict(events)


def _html_cell(value: str | None) -> str:
    return "<td><i>NULL</i></td>" if value is None else f"<td>{html.escape(printable(value))}</td>"


class Result(Mapping[str, Output]):
    """The outputs of a run by name, what it did (`stats`), and which rows it left out (`losses`), in sentences."""

    def __init__(self, outputs: dict[str, Output], stats: RunSummary, losses: Sequence[str] = ()) -> None:
        self._outputs, self.stats, self.losses = outputs, stats, tuple(losses)

    def __getitem__(self, name: str) -> Output:
        if name not in self._outputs:
            help = tuple(h for h in (did_you_mean(name, self._outputs), "outputs: " + ", ".join(self._outputs)) if h)
            raise UsageError(Diagnostic("CQ0201", f'there is no output "{name}"', help=help))
        return self._outputs[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The output with this name, or the default if there is none: unlike `[]` it never raises."""
        return self._outputs.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __contains__(self, name: object) -> bool:
        return name in self._outputs

    @property
    def only(self) -> Output:
        """The output of a query with exactly one. UsageError (CQ0201) if there are several, or none."""
        if len(self._outputs) != 1:
            names = ", ".join(self._outputs) or "none: all were written to sinks"
            raise UsageError(Diagnostic("CQ0201", f"the result has not one output, but {len(self)}", help=(names,)))
        return next(iter(self._outputs.values()))

    def to_arrow(self) -> pa.Table:
        """The rows of the only output, as by `Output.to_arrow`."""
        return self.only.to_arrow()

    def to_pandas(self) -> Any:
        """The rows of the only output, as by `Output.to_pandas`."""
        return self.only.to_pandas()

    def to_polars(self) -> Any:
        """The rows of the only output, as by `Output.to_polars`."""
        return self.only.to_polars()

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows of the only output, as by `Output.to_pylist`."""
        return self.only.to_pylist()

    def __str__(self) -> str:
        """The first rows of every output as tables, and which rows were left out."""
        titled = len(self._outputs) > 1
        tables = "\n\n".join(f"{printable(n)}\n{o}" if titled else str(o) for n, o in self._outputs.items())
        return "\n".join((*([tables] if tables else []), *(f"note: {loss}" for loss in self.losses)))

    def __repr__(self) -> str:
        return "<cq.Result " + ", ".join(f"{n}: {len(o):,} rows" for n, o in self._outputs.items()) + ">"

    def _repr_html_(self) -> str:
        tables = (f"<h4>{html.escape(printable(n))}</h4>{o._repr_html_()}" for n, o in self._outputs.items())
        return "".join((*tables, *(f"<p>note: {html.escape(loss)}</p>" for loss in self.losses)))
