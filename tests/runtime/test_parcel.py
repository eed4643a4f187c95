"""Columns of every layout through ports, parcels, lanes and Arrow, with NULLs, slices and strings of any length."""

from __future__ import annotations

import decimal
import gc
import random

import pyarrow as pa
import pytest
from engine_kernels import plain_pipeline, plain_stage

from cq.runtime.engine.engine import Engine
from cq.runtime.flow import parcel as p
from cq.runtime.layout.abi import COLUMN_WORDS, STATE_FIRST_FREE, Storage
from cq.runtime.layout.pipeline import ColumnSpec, Lanes, PortSpec, SourceSpec
from cq.ways import Way

TYPES = {
    Storage.I64: pa.int64(),
    Storage.BIT: pa.bool_(),
    Storage.I8: pa.int8(),
    Storage.I16: pa.int16(),
    Storage.I32: pa.date32(),
    Storage.F32: pa.float32(),
    Storage.F64: pa.float64(),
    Storage.I128: pa.decimal128(18, 2),
    Storage.UTF8: pa.string(),
}
COLUMNS = tuple(ColumnSpec(f"c{n}", storage, nullable=n > 0) for n, storage in enumerate(TYPES))
SCHEMA = pa.schema([pa.field(c.name, TYPES[c.storage], c.nullable) for c in COLUMNS])
STORES = {
    Storage.BIT: "st_bit(D, r, ld_bit(S, B + i))",
    Storage.I8: "st_i8(D, r, ld_i8(S, i))",
    Storage.I16: "st_i16(D, r, ld_i16(S, i))",
    Storage.I32: "st_i32(D, r, ld_i32(S, i))",
    Storage.I64: "st_i64(D, r, ld_i64(S, i))",
    Storage.F32: "st_f32(D, r, ld_f32(S, i))",
    Storage.F64: "st_f64(D, r, ld_f64(S, i))",
    Storage.I128: "st_i64(D, r * 2, ld_i64(S, i * 2))\n    st_i64(D, r * 2 + 1, ld_i64(S, i * 2 + 1))",
}


def _copy_column(number, column):
    source, target = f"source + {number * COLUMN_WORDS * 8}", f"columns + {number * 48}"
    lines = []
    if column.nullable:
        lines += [
            f"valid = ld_i64({source}, 1)",
            f"if valid == 0 or ld_bit(valid, ld_i64({source}, 3) + i):",
            f"    set_bit(ld_i64({target}, 1), r)",
        ]
    if column.storage is Storage.UTF8:
        lines += [
            f"begin = ld_i32(ld_i64({source}, 2), i)",
            f"length = ld_i32(ld_i64({source}, 2), i + 1) - begin",
            f"port_bytes(out, 0, {number}, length)",
            f"used = ld_i64({target}, 3)",
            f"copy(ld_i64({target}, 0) + used, ld_i64({source}, 0) + begin, length)",
            f"st_i64({target}, 3, used + length)",
            f"st_i32(ld_i64({target}, 2), r + 1, used + length)",
        ]
    else:
        text = STORES[column.storage].replace("D,", f"ld_i64({target}, 0),").replace("S,", f"ld_i64({source}, 0),")
        lines += text.replace("B +", f"ld_i64({source}, 3) +").split("\n    ")
    return "".join(f"    {line}\n" for line in lines)


def _module(lanes):
    row = "ld_i32(ld_i64(batch, 4), place)" if lanes else "place"
    return f"""
def hand_on_row(out, source, i, serial):
    r = ld_i64(out, 0)
    if r >= ld_i64(out, 2):
        port_grow(out, 0)
    columns = ld_i64(out, 3)
{"".join(_copy_column(n, c) for n, c in enumerate(COLUMNS))}
    if ld_i64(out, 8) != 0:
        at = ld_i64(out, 8) + r * 40
        st_i64(at, 0, serial)
        st_i64(at, 1, 9223372036854775807)
        st_i64(at, 2, 0)
        st_i64(at, 3, 0)
        st_i64(at, 4, 0)
    st_i64(out, 0, r + 1)
    return 0


def kernel(state, batch, out, constants):
    at = ld_i64(state, 0)
    while at < ld_i64(batch, 2):
        segment = ld_i64(batch, 1) + at * 48
        if ld_i64(segment, 0) < 2:
            place = ld_i64(segment, 2)
            first = {row}
            if ld_i64(state, 1) > 0:
                place = ld_i64(state, 1) - 1
            while place < ld_i64(segment, 3):
                if ld_i64(out, 0) >= ld_i64(out, 1):
                    st_i64(state, 0, at)
                    st_i64(state, 1, place + 1)
                    return 1
                i = {row}
                source = ld_i64(ld_i64(batch, 3), 0)
                if ld_i64(ld_i64(source, 0), i) >= 0:
                    hand_on_row(out, source, i, ld_i64(segment, 4) + i - first)
                place += 1
            st_i64(state, 1, 0)
        at += 1
    st_i64(state, 0, 0)
    return 0


def lanes(batch, port, lo, hi, out, constants):
    values = ld_i64(ld_i64(ld_i64(batch, 3), port), 0)
    for row in range(lo, hi):
        st_u32(out, row - lo, hash_word(ld_i64(values, row)))
    return 1
"""


def copying(runs=Way.LOOP, limit=None):
    """A pipeline whose rows with c0 >= 0 come out as they are."""
    lanes = runs is Way.LANES
    four = "i64(i64, i64, i64, i64)"
    functions = (("hand_on_row", four), ("kernel", four), ("lanes", "i64(i64, i64, i64, i64, i64, i64)"))
    stage = plain_stage(
        name="copy",
        way=runs,
        module=_module(lanes),
        functions=functions,
        entry="kernel",
        slots=(),
        state_words=STATE_FIRST_FREE,
        ports=(PortSpec("out", COLUMNS, limit),),
        lanes=Lanes(entry="lanes", count=4, branches=1, turns=1) if lanes else None,
    )
    return plain_pipeline([SourceSpec("s", COLUMNS)], [stage])


def table(seed, rows, longest=40):
    dice = random.Random(seed)

    def maybe(value):
        return None if dice.random() < 0.3 else value

    names = ["", "a", "é", "word" * 3, "x" * longest]
    columns = [
        [dice.randrange(-3, 20) for _ in range(rows)],
        [maybe(dice.random() < 0.5) for _ in range(rows)],
        [maybe(dice.randrange(-128, 128)) for _ in range(rows)],
        [maybe(dice.randrange(-32768, 32768)) for _ in range(rows)],
        [maybe(dice.randrange(-1000, 1000)) for _ in range(rows)],
        [maybe(dice.randrange(100) / 4) for _ in range(rows)],
        [maybe(dice.random()) for _ in range(rows)],
        [maybe(decimal.Decimal(dice.randrange(-(10**17), 10**17)).scaleb(-2)) for _ in range(rows)],
        [maybe(dice.choice(names)) for _ in range(rows)],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def run(pipeline, batches, **options):
    found = []
    with Engine(pipeline, schemas=[SCHEMA], **options) as engine:
        assert engine.run([iter(batches)], lambda _, b: found.append(b)) is None
    for batch in found:
        batch.validate(full=True)
    return found


def kept(batches):
    return [row for b in batches for row in b.to_pylist() if row["c0"] >= 0]


@pytest.fixture(params=[{"interpreted": True}, {"threads": 0}, {"threads": 2}], ids=["interpreted", "inline", "two"])
def way(request):
    return request.param


@pytest.mark.parametrize("runs", [Way.LOOP, Way.ANY, Way.LANES])
@pytest.mark.parametrize("batch_rows", [3, 64])
def test_every_layout_goes_through(way, runs, batch_rows):
    whole = table(1, 500)
    batches = [whole.slice(0, 13), whole.slice(13, 100), whole.slice(113, 7), whole.slice(120)]
    found = run(copying(runs), batches, batch_rows=batch_rows, **way)
    assert [row for b in found for row in b.to_pylist()] == kept(batches)


@pytest.mark.one_in(3)
def test_parcels_used_again_show_no_bits_of_their_last_rows(way):
    full = pa.RecordBatch.from_arrays(
        [pa.array([1 if f.type == pa.int64() else None] * 50, f.type) for f in SCHEMA], schema=SCHEMA
    )
    batches = [table(2, 50), full] * 3
    found = []
    with Engine(copying(), schemas=[SCHEMA], batch_rows=50, **way) as engine:
        for batch in batches:
            engine.push(0, batch)
            for _, rows in engine.drain():
                found += rows.to_pylist()
                del rows
            gc.collect()
    assert found == kept(batches)


def test_a_limit_cuts_in_the_middle_of_a_parcel_and_the_rest_leaves_no_bits(way):
    found = run(copying(limit=33), [table(3, 200)], batch_rows=50, **way)
    assert [row for b in found for row in b.to_pylist()] == kept([table(3, 200)])[:33]


def test_long_strings_grow_a_port(way):
    batches = [table(4, 60, longest=5000)]
    found = run(copying(), batches, batch_rows=64, **way)
    assert [row for b in found for row in b.to_pylist()] == kept(batches)


def test_strings_at_the_end_of_a_page_are_copied_where_they_could_be_overrun():
    # a string column whose bytes end at every offset around a page boundary
    for size in range(4096 - 20, 4096 + 4):
        text = pa.py_buffer(b"y" * size)
        offsets = pa.py_buffer(size.to_bytes(4, "little").rjust(8, b"\0"))
        arrays = [pa.array([1 if f.type == pa.int64() else None], f.type) for f in SCHEMA]
        arrays[-1] = pa.Array.from_buffers(pa.string(), 1, [None, offsets, text])
        batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        (found,) = run(copying(), [batch])
        assert found.column("c8").to_pylist() == ["y" * size]


def test_few_rows_do_not_hold_the_memory_of_many():
    (found,) = run(copying(), [table(5, 10)], batch_rows=16384)
    assert found.nbytes < 2000
    assert found.get_total_buffer_size() < 4000


def test_results_are_given_back_to_the_engine_and_used_again():
    rows = table(6, 1000)
    with Engine(copying(), schemas=[SCHEMA], batch_rows=1000) as engine:
        for _ in range(50):
            engine.push(0, rows)
            engine.drain()
        stage = engine.metrics().stages[0]
        assert stage.rows_in == 50_000
        assert engine._host.word(engine._plant.depots[0][0], p.DEPOT_USERS) < 10


def test_a_batch_is_given_back_once_nobody_reads_it():
    freed = []

    class Owner:
        def __del__(self):
            freed.append(1)

    data = bytearray(8 * 100)
    buffer = pa.foreign_buffer(pa.py_buffer(data).address, len(data), base=Owner())
    columns = [pa.array([1 if f.type == pa.int64() else None] * 100, f.type) for f in SCHEMA]
    columns[0] = pa.Array.from_buffers(pa.int64(), 100, [None, buffer])
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    del columns, buffer
    with Engine(copying(), schemas=[SCHEMA], threads=1) as engine:
        engine.push(0, batch)
        del batch
        engine.drain()
        engine.push(0, table(1, 3))
        engine.drain()
        gc.collect()
        assert freed == [1]
