"""Records and entries keep as many NULLs as they have columns: a word of bits for every 62 of them."""

from __future__ import annotations

import pytest
from cases import Prepared, Way

from cq.codegen.state.hash_tables import NULLS_A_WORD, lay_out, null_words
from cq.lang.types import BIGINT, VARCHAR

INTERPRETED = (Way(0, 3, interpreted=True), Way(2, 3, interpreted=True))
INLINE, WORKERS = Way(0, 4096), Way(2, 3)
ONE_MORE = NULLS_A_WORD + 1
SECOND = 1_000_000


def declared(name: str, count: int) -> str:
    columns = ", ".join(f"c{n} BIGINT" for n in range(count))
    return (
        f"CREATE STREAM {name} (k BIGINT NOT NULL, {columns}, ts TIMESTAMP NOT NULL, "
        f"WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (connector = 'memory');\n"
    )


def rows(count: int, seed: int = 0) -> list[tuple[object, ...]]:
    """Out of order within the delay; column n of row r is NULL in a pattern of its own."""
    return [
        (r % 3, *(None if (n * 7 + r * 5 + seed) % 4 == 0 else n * 100 + r for n in range(count)), at * SECOND)
        for r, at in enumerate((1, 3, 2, 5, 4, 9, 8, 12))
    ]


def agrees(text: str, given: dict[str, list[tuple[object, ...]]], *compiled: Way) -> str:
    """The error; interpreted and in these ways the query gives what the reference gives.

    Compiling such wide rows takes 10 s and more: for two queries once, with one column more than a word has bits.
    """
    prepared = Prepared(text)
    prepared.give(given)
    wanted = prepared.reference()
    assert any(wanted.rows.values()) or wanted.error
    for way in (*INTERPRETED, *compiled):
        assert prepared.native(way) == wanted, str(way)
    return wanted.error


@pytest.mark.parametrize("count", [NULLS_A_WORD, ONE_MORE])
def test_rows_that_wait_for_their_turn_in_a_frame_keep_their_nulls(count: int) -> None:
    names = ", ".join(f"c{n}" for n in range(count))
    text = f"SELECT k, {names}, COUNT(c1) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n FROM s;"
    agrees(declared("s", count) + text, {"s": rows(count)}, *((WORKERS,) if count == ONE_MORE else ()))


def test_the_right_side_of_a_temporal_join_keeps_its_nulls() -> None:
    count = ONE_MORE
    right = ", ".join(f"w.c{n}" for n in range(count))
    most = ", ".join(f"MAX(c{n}) AS c{n}" for n in range(count))
    view = (
        f"CREATE VIEW w AS SELECT window_end, k, {most} FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND) "
        "GROUP BY window_start, window_end, k;\n"
    )
    text = f"SELECT s.k, {right} FROM s LEFT JOIN w FOR SYSTEM_TIME AS OF s.ts ON w.k = s.k;"
    agrees(declared("s", count) + view + text, {"s": rows(count)})


@pytest.mark.parametrize("count", [NULLS_A_WORD, ONE_MORE])
def test_groups_tell_apart_keys_that_differ_in_their_last_null(count: int) -> None:
    names = ", ".join(f"c{n}" for n in range(count))
    given = [(1, *(0 for _ in range(count)), 1), (1, *(0 for _ in range(count - 1)), None, 2)]
    for keys, way in ((names, INLINE), (f"window_start, window_end, {names}", WORKERS)):
        source = "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND)" if keys != names else "s"
        text = f"SELECT {names}, COUNT(*) AS n FROM {source} GROUP BY {keys};"
        agrees(declared("s", count) + text, {"s": given}, *((way,) if count == ONE_MORE else ()))


def test_an_error_names_the_nulls_of_a_group_of_many_keys() -> None:
    names = ", ".join(f"c{n}" for n in range(66))
    most = 2**63 - 1
    given = [(1, *(None if n in (0, 65) else n for n in range(64)), most, None, at) for at in (1, 2)]
    text = (
        "SELECT COUNT(*) AS n, SUM(c64) AS t FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND) "
        f"GROUP BY window_start, window_end, {names};"
    )
    error = agrees(declared("s", 66) + text, {"s": given})
    assert "c0 = NULL, c1 = 1," in error and error.endswith("c65 = NULL")


def test_rows_that_are_gathered_keep_their_nulls() -> None:
    names = ", ".join(f"c{n}" for n in range(ONE_MORE))
    text = f"SELECT {names} FROM s WHERE k <> 1 UNION ALL SELECT {names} FROM t UNION ALL SELECT {names} FROM s;"
    given = {"s": rows(ONE_MORE), "t": rows(ONE_MORE, 3)}
    agrees(declared("s", ONE_MORE) + declared("t", ONE_MORE) + text, given)


def test_words_of_bits_stand_behind_the_values() -> None:
    columns = [(VARCHAR, True), (BIGINT, False), *[(BIGINT, True)] * NULLS_A_WORD]
    fields, end = lay_out(columns, 3)
    values = 3 + 2 + 1 + NULLS_A_WORD
    assert null_words(fields) == (values, values + 1) and end == values + 2
    assert (fields[0].null_word, fields[0].null_bit) == (values, 0)
    assert (fields[1].null_word, fields[1].null_bit) == (-1, -1)
    assert (fields[-1].null_word, fields[-1].null_bit) == (values + 1, 0)
    assert lay_out([(BIGINT, False)], 3) == ((fields[1].__class__(BIGINT, 3),), 4)
