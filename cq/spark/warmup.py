"""Make later starts of Spark cheaper: an ahead-of-time cache of the classes a diff loads (180 MB; 20 s to make)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cq.errors import Diagnostic, EngineError, UsageError
from cq.spark.exchange import query, to_spark
from cq.spark.jre import AOT_JAVA, aot_cache, find_java
from cq.spark.session import close_session, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRAIN_SECONDS: Final = 180  # the JVM writes the cache as it ends: 10-20 s of CPU

# The kinds of query that a diff runs; the cache holds what they load.
TRAINING: Final = (
    "SELECT t, k, SUM(v) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS total,"
    " LAG(v) OVER (PARTITION BY k ORDER BY t) AS before FROM _training WHERE k <> 3",
    "SELECT k, COUNT(*) AS n, SUM(v) AS total, COUNT(DISTINCT s) AS words, MIN(t) AS first_t,"
    " AVG(CAST(v AS DECIMAL(12, 2))) AS mean FROM _training GROUP BY k HAVING COUNT(*) > 1",
    "WITH a AS (SELECT k, UNIX_MICROS(CAST(t AS TIMESTAMP_LTZ)) AS u, s FROM _training),"
    " b AS (SELECT k, EXPLODE(SPLIT(s, ' ')) AS word FROM a UNION ALL SELECT k, UPPER(s) FROM a)"
    " SELECT a.k, b.word, MAX(a.u) AS u, COUNT(*) AS n FROM a JOIN b ON a.k = b.k WHERE b.word LIKE 'r%'"
    " GROUP BY a.k, b.word ORDER BY n, a.k",
)


def train_aot() -> Path:
    """Write the cache for the current Java and pyspark, and return its path. No session may be open."""
    java = find_java()
    target = aot_cache(java)
    if target is None:
        raise UsageError(
            Diagnostic(
                "CQ0604",
                f"an ahead-of-time cache needs Java {AOT_JAVA} and a cache directory that only you can write; "
                f"found Java {java.version or 'of unknown version'} ({java.found_by})",
                help=(
                    "pip install 'cq[spark]' brings such a Java; unset CQ_JAVA_HOME and JAVA_HOME to use it",
                    "set CQ_CACHE_DIR to a directory that only you can write",
                ),
            )
        )
    made = target.with_suffix(f".{os.getpid()}")
    try:
        session = open_session("small", train=made)
        try:
            _exercise(session)
        finally:
            close_session(TRAIN_SECONDS)
        if not made.exists():
            raise EngineError(Diagnostic("CQ0902", "the Java process wrote no ahead-of-time cache"))
        made.chmod(0o600)
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)
    return target


def _exercise(session: SparkSession) -> None:
    import pyarrow as pa

    rows = range(2_000)
    table = pa.table(
        {
            "k": pa.array([i % 7 for i in rows], pa.int64()),
            "v": pa.array([float(i) for i in rows]),
            "s": pa.array([f"row {i % 50}" for i in rows]),
            "t": pa.array(rows, pa.timestamp("us")),
        }
    )
    to_spark(session, table, "_training")
    for text in TRAINING:
        query(session, text)
