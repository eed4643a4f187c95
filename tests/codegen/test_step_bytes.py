"""What a row takes of the step memory is free for the next one: memory does not grow with the rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cq.compiler.passes import compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.runtime.engine.engine import Engine

TEXT = """
CREATE STREAM s (key BIGINT[], val BIGINT[]);
CREATE TABLE t (key BIGINT PRIMARY KEY, val BIGINT NOT NULL);
INSERT INTO t VALUES (1, 0), (2, 0);
CREATE TRIGGER changed AFTER INSERT ON s BEGIN ATOMIC
  UPDATE t SET val = t.val + u.val FROM UNNEST(new.key, new.val) AS u (key, val) WHERE t.key = u.key;
  SELECT 1 AS done;
END;
SELECT * FROM changed;
"""


def test_what_a_rejection_would_put_back_takes_no_memory_of_later_events(tmp_path: Path) -> None:
    rows = pa.table({"key": [[1, 2]] * 100, "val": [[3, 4]] * 100})
    compiled = compile(TEXT, "q", inputs=Inputs(FileAccess(tmp_path), {"s": rows}))
    (pipeline,) = compiled.for_workers(1).after("emit")
    in_use = []
    with Engine(pipeline, interpreted=True) as engine:
        for _ in range(8):
            for batch in rows.to_batches():
                engine.push(0, batch)
            engine.drain()
            in_use.append(engine._host.memory.in_use_bytes)
    assert in_use[-1] == in_use[1]
