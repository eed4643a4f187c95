"""Native generators: the same bytes as their definitions in numpy, however much is asked for and however it is cut."""

import numpy as np
import pyarrow as pa
import pytest

from cq.connectors.generator import generate
from cq.connectors.natives import NONE
from cq.engines.feeding import natives_of
from cq.runtime.base import kernel
from cq.runtime.base.native import native
from cq.runtime.base.ops import st_f64, st_i64
from cq.runtime.generators import TWINS, linear_road, twin
from cq.runtime.generators.draws import below_high, fill_draws, mixed_with, picked, share_of, unit_of
from cq.runtime.generators.kept_memory import KeptMemory
from cq.workloads import WORKLOADS, batches
from cq.workloads.draws import below, cumulative, mix, philox, raw, unit
from cq.workloads.linear_road.profiles import LIGHT
from cq.workloads.linear_road.stream import SCHEMA
from cq.workloads.linear_road.traffic import BLOCK_S

BIG = (1 << 63) - 1


def pairs(name, **parameters):
    """The batches of the definition, and those of the twin."""
    workload = WORKLOADS[name]
    made = twin(name)
    assert made is not None
    return list(workload.generate(**parameters)), list(workload.generate_by(made, parameters))


def check(name, **parameters):
    """Batch by batch the same rows in the same types; returns how many."""
    wanted, found = pairs(name, **parameters)
    assert [b.num_rows for b in found] == [b.num_rows for b in wanted]
    for one, other in zip(wanted, found, strict=True):
        assert other.schema.equals(one.schema)
        for n, field in enumerate(one.schema):
            assert other.column(n).equals(one.column(n)), field.name
        other.validate(full=True)
    return sum(b.num_rows for b in found)


# -- random numbers --------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def draws_at(out: int, seed: int, stream: int, purpose: int, block: int, first: int, count: int) -> int:
    return fill_draws(out, seed, stream, purpose, block, first, count)


@native("void(i64, i64, i64, i64, i64, i64)", export=True)
def shapes_of(draw: int, bound: int, table: int, size: int, ints: int, doubles: int) -> None:
    st_i64(ints, 0, mixed_with(mixed_with(0, draw), bound))
    st_i64(ints, 1, below_high(draw, bound))
    st_i64(ints, 2, picked(table, size, unit_of(draw)))
    st_f64(doubles, 0, unit_of(draw))
    st_f64(doubles, 1, share_of(mixed_with(mixed_with(0, draw), bound)))


@pytest.mark.parametrize(("seed", "stream", "purpose", "block"), [(0, 0, 0, 0), (1, 3, 1, 7), (BIG, 1999, 21, 10**9)])
def test_draws_are_those_of_numpy_wherever_they_begin(seed, stream, purpose, block):
    natively = kernel.compile_functions(draws_at)["draws_at"]
    wanted = raw(philox(seed, stream, purpose, block), 50)
    for first in range(9):
        for count in (0, 1, 3, 4, 5, 41):
            room = np.full(count + 6, -1, np.int64)
            at = (natively(room.ctypes.data, seed, stream, purpose, block, first, count) - room.ctypes.data) // 8
            assert room[at : at + count].tolist() == wanted[first : first + count].tolist()


def test_draws_are_shaped_as_numpy_shapes_them():
    natively = kernel.compile_functions(shapes_of)["shapes_of"]
    table = cumulative([1.0, 2.0, 0.0, 5.0])
    ints, doubles = np.zeros(3, np.int64), np.zeros(2, np.float64)
    drawn = raw(philox(5, 6, 7, 8), 400)
    edges = [0, 1, (1 << 63) - 1, *(int(end * 2.0**53) << 10 for end in table[:-1])]
    for draw in np.concatenate((drawn, np.array(edges, np.int64))):
        natively(int(draw), 281, table.ctypes.data, len(table), ints.ctypes.data, doubles.ctypes.data)
        one = np.array([draw])
        hashed = mix(int(draw), 281)
        assert ints.view(np.uint64)[0] == hashed
        assert ints[1] == below(one, 281)[0]
        assert ints[2] == np.searchsorted(table, unit(one), side="right")[0]
        assert doubles.tolist() == [unit(one)[0], (hashed >> 11) * 2.0**-53]


# -- Linear Road -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 7, BIG])
def test_a_whole_tiny_stream_is_the_same(seed):
    """Accidents, look-alikes, exits and vehicles that come back: 1,800 s have them all."""
    assert check("linear_road", profile="tiny", seed=seed) > 50_000


@pytest.mark.parametrize("profile", ["light", "heavy", "classic"])
@pytest.mark.parametrize("expressways", [0.5, 1, 2.5])
def test_every_profile_and_number_of_expressways_is_the_same(profile, expressways):
    check("linear_road", profile=profile, expressways=expressways, rows=60_000, seed=3)


@pytest.mark.parametrize("rows", [0, 1, 16_383, 16_384, 16_385, 49_153])
def test_any_number_of_rows_is_the_same(rows):
    assert check("linear_road", profile="light", rows=rows) == rows


@pytest.mark.parametrize("duration_s", [0, 1, 59, 60, 61, 601])
def test_any_duration_is_the_same(duration_s):
    check("linear_road", profile="heavy", duration_s=duration_s)
    check("linear_road", profile="heavy", duration_s=duration_s, rows=700)


@pytest.mark.parametrize("queries", [0, 0.3, 1])
def test_any_share_of_queries_is_the_same(queries):
    """At 1 every report brings a query along: as many rows as there is room for."""
    check("linear_road", profile="tiny", queries=queries, expressways=1.5)


def test_traffic_beyond_its_duration_and_many_incidents_are_the_same():
    assert check("linear_road", profile="light", rows=1_000_000, seed=11) == 1_000_000


def test_small_batches_are_cut_at_the_same_rows(monkeypatch):
    for module in (batches, linear_road):
        monkeypatch.setattr(module, "GENERATED_ROWS", 100)
    monkeypatch.setattr(linear_road, "HELD_ROWS", 300)
    check("linear_road", profile="tiny", duration_s=700)


def test_rows_that_were_handed_out_stay_as_they_are():
    made = linear_road.generate("light", rows=200_000)
    kept = [next(made) for _ in range(3)]
    before = [pa.RecordBatch.from_pylist(b.slice(0, 50).to_pylist(), schema=b.schema) for b in kept]
    for _ in made:
        pass
    assert [b.slice(0, 50) for b in kept] == before


@pytest.mark.parametrize("read", [(), ("qid", "day", "xway"), ("s_init", "vid"), SCHEMA.names])
def test_columns_that_are_read_are_the_same_whatever_the_others_hold(read):
    wanted, found = (
        pa.Table.from_batches(linear_road.generate("tiny", duration_s=700, queries=0.3, read=r)) for r in (None, read)
    )
    assert found.schema == wanted.schema and found.num_rows == wanted.num_rows
    assert found.select(list(read)) == wanted.select(list(read))


def test_memory_that_nobody_reads_is_filled_again():
    memory = KeptMemory()
    first = memory.buffer(100_000)
    array = pa.Array.from_buffers(pa.int64(), 10, [None, first])
    address = first.address
    assert address % 64 == 0
    assert memory.buffer(100_000).address != address
    del first
    assert memory.buffer(100_000).address != address
    del array
    again = [memory.buffer(90_000) for _ in range(3)]
    assert address in {buffer.address for buffer in again}
    assert memory.buffer(1_000_000).address != address


def test_reports_stay_within_the_room_that_is_made_for_them():
    road = linear_road.Road(LIGHT, 1, 0)
    vid = 0
    for block in range(90):
        new = road.arrive(block)
        road.drive(block, np.arange(vid, vid + len(new.time), dtype=np.int64))
        vid += len(new.time)
        edges = road._kept[linear_road.t.ROAD_EDGES]
        assert edges[BLOCK_S] == road.reports <= road.words[linear_road.t.ROAD_REPORT_ROOM]
        assert np.diff(edges).max() <= road.most_at_once


# -- bids and sentences ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"seed": BIG, "keys": 1, "bidders": 1, "interval_us": 0},
        {"keys": 10_000, "theta": 0.9, "scatter": True, "delay_us": 10**9},
        {"nulls": 0.3, "theta": 4, "keys": 7, "bidders": 10**9, "interval_us": 60_000_000},
        {"nulls": 1},
        {"nulls": 1e-9},
    ],
)
def test_bids_are_the_same(parameters):
    for rows in (0, 1, 7, 16_384, 40_001):
        assert check("bids", rows=rows, **parameters) == rows


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"seed": BIG, "theta": 0, "vocabulary": 1, "words_per_line": 1},
        {"theta": 2.5, "vocabulary": 500, "words_per_line": 37, "interval_us": 60_000_000},
        {"artefact": True},
        {"artefact": True, "words_per_line": 1, "seed": 3},
    ],
)
def test_sentences_are_the_same(parameters):
    for rows in (0, 1, 7, 16_384, 40_001):
        assert check("sentences", rows=rows, **{"vocabulary": 3000, **parameters}) == rows


@pytest.mark.parametrize("name", ["nexmark_person", "nexmark_auction", "nexmark_bid"])
@pytest.mark.parametrize("parameters", [{}, {"seed": BIG, "rate": 1, "disorder": 952}, {"rate": 10**6, "disorder": 7}])
def test_streams_of_nexmark_are_the_same(name, parameters):
    for rows in (0, 1, 16_385):
        assert check(name, rows=rows, **parameters) == rows


def test_bidders_of_flink_are_the_same():
    check("nexmark_bid", rows=100, flink_bidders=True)


# -- who uses them ---------------------------------------------------------------------------------------------------


def test_every_twin_is_of_a_workload_and_others_have_none():
    assert set(TWINS) <= WORKLOADS.keys()
    assert all(twin(name) is not None for name in TWINS)
    assert twin("no workload") is None


def test_the_native_engine_alone_reads_twins():
    assert natives_of("reference") == NONE
    assert natives_of("spark") == NONE
    taken = []

    def twins(name, read):
        def build(**parameters):
            taken.append((name, parameters["rows"], read))
            return iter(())

        return build

    options = {"connector": "generator", "workload": "linear_road", "rows": "5"}
    assert list(generate(options, twins)[1]) == []
    assert taken == [("linear_road", 5, None)]
    assert sum(b.num_rows for b in generate(options, lambda name, read: None)[1]) == 5
    assert sum(b.num_rows for b in generate(options)[1]) == 5
