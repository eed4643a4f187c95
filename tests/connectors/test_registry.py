"""A connector is one entry: what it declares is all that others ask, and one that leaves something out is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

import cq
from cq.connectors.access import FileAccess
from cq.connectors.arrow.source import arrow_pieces
from cq.connectors.formats import loaded
from cq.connectors.option_kinds import OptionDef, OptionKind
from cq.connectors.registry import (
    ROW_OPTIONS,
    SINKS,
    SOURCES,
    SinkConnector,
    SourceConnector,
    register_sink,
    register_source,
)
from cq.connectors.requests import Opened, SourceRequest
from cq.connectors.schemas import Columns, columns_of
from cq.connectors.sinks.writers import Discard, SinkRequest
from cq.errors import CODES
from cq.records import fields, replace

SCHEMA = pa.schema([("n", pa.int64()), ("half", pa.float64())])
TAKEN: list[pa.RecordBatch] = []


def columns(options: Mapping[str, str], access: FileAccess, stream: str) -> Columns:
    return columns_of(SCHEMA)


def opened(asked: SourceRequest) -> Opened:
    """The numbers from 0 on."""
    numbers = range(int(asked.options["count"]))
    batch = pa.record_batch([pa.array(numbers, pa.int64()), pa.array([n / 2 for n in numbers])], SCHEMA)
    pieces = arrow_pieces(SCHEMA, iter((batch,)), f"<{asked.stream}>", asked.rules)
    return Opened(pieces, None, asked.rules.nothing())


class Taking(Discard):
    """Keeps what it takes where the test looks."""

    def write(self, batch: pa.RecordBatch) -> None:
        TAKEN.append(batch)


def taking(asked: SinkRequest) -> Taking:
    TAKEN.clear()
    return Taking()


@pytest.fixture
def counter() -> Iterator[SourceConnector]:
    made = SourceConnector(
        name="counter",
        options={"count": OptionDef(OptionKind.INTEGER, "how many numbers", required=True), **ROW_OPTIONS},
        takes_more=False,
        open=f"{__name__}:opened",
        ends=lambda options: options["count"] != "0",
        narrows=False,
        computes=False,
        columns=f"{__name__}:columns",
    )
    register_source(made)
    yield made
    del SOURCES["counter"]


@pytest.fixture
def taker() -> Iterator[SinkConnector]:
    made = SinkConnector(name="taker", options={}, takes_more=False, open=f"{__name__}:taking")
    register_sink(made)
    yield made
    del SINKS["taker"]


COUNTER = "CREATE STREAM c WITH (connector = 'counter', count = 4);"


@pytest.mark.usefixtures("counter")
@pytest.mark.parametrize("engine", ["reference", "native"])
def test_a_source_that_declares_everything_is_read(engine: str) -> None:
    found = cq.sql(f"{COUNTER} SELECT n, half FROM c WHERE n > 1").run(engine=engine)
    assert found.to_arrow().to_pydict() == {"n": [2, 3], "half": [1.0, 1.5]}


@pytest.mark.usefixtures("counter", "taker")
def test_a_sink_that_declares_everything_is_written_to() -> None:
    cq.sql(f"{COUNTER} CREATE SINK o WITH (connector = 'taker'); INSERT INTO o SELECT n FROM c").run()
    assert [v for batch in TAKEN for v in batch.column(0).to_pylist()] == [0, 1, 2, 3]


@pytest.mark.usefixtures("counter")
@pytest.mark.parametrize(
    ("options", "code"),
    [("", "CQ0207"), ("count = 'many'", "CQ0208"), ("count = 1, speed = 2", "CQ0207")],
)
def test_its_options_are_checked_by_its_entry(options: str, code: str) -> None:
    also = f", {options}" if options else ""
    with pytest.raises(cq.CqError) as caught:
        cq.sql(f"CREATE STREAM c WITH (connector = 'counter'{also}); SELECT n FROM c").run()
    assert caught.value.code == code in CODES


def test_whether_it_ends_is_asked_of_its_entry(counter: SourceConnector) -> None:
    sorted_by = "SELECT n FROM c ORDER BY half"
    assert cq.sql(f"{COUNTER} {sorted_by}").run().to_arrow().num_rows == 4
    with pytest.raises(cq.CqError) as caught:
        cq.sql(f"{COUNTER.replace('4', '0')} {sorted_by}").run()
    assert caught.value.code == "CQ0406"


def test_columns_that_it_does_not_know_have_to_be_declared(counter: SourceConnector) -> None:
    SOURCES["counter"] = replace(counter, columns="")
    with pytest.raises(cq.CqError, match="a stream from counter has no schema of its own"):
        cq.sql(f"{COUNTER} SELECT n FROM c").run()
    declared = COUNTER.replace("c WITH", "c (n BIGINT, half DOUBLE) WITH")
    assert cq.sql(f"{declared} SELECT n FROM c").run().to_arrow().num_rows == 4


def test_one_that_takes_more_is_given_options_nobody_listed(counter: SourceConnector) -> None:
    SOURCES["counter"] = replace(counter, takes_more=True)
    assert cq.sql(f"{COUNTER.replace('4', '4, speed = 2')} SELECT n FROM c").run().to_arrow().num_rows == 4


@pytest.mark.parametrize(
    ("example", "name"), [(e, f.name) for e in (SOURCES["file"], SINKS["file"]) for f in fields(type(e))]
)
def test_one_that_leaves_a_declaration_out_is_refused_by_its_name(example: Any, name: str) -> None:
    said = {f.name: getattr(example, f.name) for f in fields(type(example))}
    del said[name]
    with pytest.raises(TypeError, match=name):
        type(example)(**said)


@pytest.mark.parametrize("entry", [*SOURCES.values(), *SINKS.values()], ids=lambda e: f"{type(e).__name__} {e.name}")
def test_what_an_entry_names_is_there(entry: Any) -> None:
    places = [entry.open, *([entry.columns] if getattr(entry, "columns", "") else [])]
    assert all(callable(loaded(place)) for place in places)
