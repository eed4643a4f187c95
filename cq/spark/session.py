"""The one Spark session of this process.

`open_session` returns it, `close_session` ends it and removes everything it wrote; `spark_errors` converts what Spark
raises into our errors. If somebody else started Spark in this process (a notebook, a cluster), it is used through a
separate session with our settings, and not closed.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cq.errors import CqError
from cq.records import dataclass
from cq.spark.failures import translate
from cq.spark.jre import (
    STOP_SECONDS,
    Jvm,
    Profile,
    missing_package,
    pyspark_home,
    start_jvm,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Settings that fix the meaning of a query, or keep Spark from answering differently on another machine.
MEANING: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
COMFORT: Final = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
    # 10,000 rows (the default) made Arrow functions three times slower than 100,000
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
    # one round resolves one level: 100 (the default) were too few for 150 nested views
    "spark.sql.analyzer.maxIterations": "1000",
}
TASKS: Final = {"small": 2, "throughput": os.cpu_count() or 2}
QUERY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # 10 kB of JSON for each failing query


@dataclass(slots=True)
class _Open:
    """The open session; `jvm` is None if somebody else started the session."""

    session: SparkSession
    profile: Profile
    jvm: Jvm | None


_lock = threading.RLock()
_open: list[_Open] = []


def open_session(profile: Profile = "small", train: Path | None = None) -> SparkSession:
    """The session of this process, started if there is none.

    profile: `small` starts fast and suits tests and diffs; `throughput` lets the JVM optimise and uses all cores. A
    second call must use the same one. train: see `start_jvm`.
    """
    with _lock:
        if _open and _open[0].jvm is not None and _open[0].jvm.process.poll() is not None:
            close_session()  # its JVM was killed or ran out of memory: the next query gets a new one
        if not _open:
            _open.append(_start(profile, train))
            atexit.register(close_session)
        here = _open[0]
        assert here.jvm is None or here.profile == profile, f"a session with profile {here.profile} is already open"
        return here.session


def close_session(seconds: float = STOP_SECONDS) -> None:
    """End the session, its JVM, and the files it wrote, if there is one. seconds: how long before the JVM is killed."""
    with _lock:
        if not _open:
            return
        here = _open.pop()
        atexit.unregister(close_session)
        if here.jvm is not None:
            _stop(here.session, here.jvm, seconds)


def private_directory() -> Path | None:
    """A directory that ends with the session and that its tasks can read; None if somebody else started the session."""
    with _lock:
        return _open[0].jvm.directory if _open and _open[0].jvm is not None else None


@contextlib.contextmanager
def spark_errors() -> Iterator[None]:
    """Raise whatever Spark raises inside as a `DataError` or `EngineError` of one line; Ctrl-C stays Ctrl-C."""
    try:
        yield
    except (CqError, AssertionError):
        raise
    except Exception as error:
        if _was_interrupted(error):  # Spark cancels its jobs and then complains that they were cancelled
            raise KeyboardInterrupt from error
        raise translate(error, _open[0].jvm if _open else None) from error


def _was_interrupted(error: BaseException) -> bool:
    before: BaseException | None = error
    while before is not None:
        if isinstance(before, KeyboardInterrupt):
            return True
        before = before.__context__
    return False


def _start(profile: Profile, train: Path | None) -> _Open:
    _demand_packages()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    _silence_loggers()
    if SparkContext._active_spark_context is not None:
        session = SparkSession(SparkContext._active_spark_context).newSession()
        for key, value in (MEANING | COMFORT).items():
            session.conf.set(key, value)
        return _Open(session, profile, None)
    jvm = start_jvm(profile, train)
    try:
        return _Open(_attach(jvm, profile), profile, jvm)
    except BaseException as error:
        _forget_gateway()
        fault = translate(error, jvm) if isinstance(error, Exception) else error
        jvm.close(0)
        raise fault from error


def _demand_packages() -> None:
    pyspark_home()
    for package in ("pandas", "google.protobuf"):  # pyspark uses both in places and requires neither
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise missing_package(package.removeprefix("google."))


def _silence_loggers() -> None:
    """Failures reach the user only as our errors: not as JSON for each query, not as a traceback when a JVM ends."""
    from pyspark.logger import PySparkLogger

    for name in QUERY_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    logging.getLogger().addFilter(_is_not_a_lost_gateway)


def _is_not_a_lost_gateway(record: logging.LogRecord) -> bool:
    # py4j logs this on the root logger, which has no name to switch off
    return record.msg != "Exception while sending command."


def _attach(jvm: Jvm, profile: Profile) -> SparkSession:
    """A session in `jvm`. What PySpark reads from the environment is set only meanwhile: no child sees the secret."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    attaching = {
        "PYSPARK_GATEWAY_PORT": str(jvm.port),
        "PYSPARK_GATEWAY_SECRET": jvm.secret,
        "PYSPARK_PYTHON": sys.executable,  # workers use the Python that runs us, whatever the PATH says
    }
    before = {name: os.environ.get(name) for name in attaching}
    os.environ.update(attaching)
    try:
        conf = SparkConf(loadDefaults=False).setAll(_settings(jvm, profile).items())
        with _interrupt_handler_kept():
            context = SparkContext(conf=conf, gateway=launch_gateway())
        context._accumulatorServer.handle_error = _say_nothing
        return SparkSession(context)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _say_nothing(request: object, address: object) -> None:
    """Silence the accumulator server when a JVM is gone; the query that needed the JVM reports it."""


def _settings(jvm: Jvm, profile: Profile) -> dict[str, str]:
    tasks = str(TASKS[profile])
    return {
        "spark.master": f"local[{tasks}]",
        "spark.app.name": "cq",
        "spark.default.parallelism": tasks,
        "spark.sql.shuffle.partitions": tasks,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(jvm.directory),
        "spark.sql.warehouse.dir": str(jvm.directory / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **MEANING,
        **COMFORT,
    }


@contextlib.contextmanager
def _interrupt_handler_kept() -> Iterator[None]:
    """Restore a Ctrl-C handler that the program installed; SparkContext brings its own."""
    before = signal.getsignal(signal.SIGINT)
    yield
    ours = before is not signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours and before is not None:
        signal.signal(signal.SIGINT, before)


def _stop(session: SparkSession, jvm: Jvm, seconds: float) -> None:
    with warnings.catch_warnings(), contextlib.suppress(Exception):  # a JVM that is gone cannot be stopped in order
        warnings.simplefilter("ignore")
        session.stop()
    _forget_gateway()
    jvm.close(seconds)


def _forget_gateway() -> None:
    """Make PySpark forget its JVM, so that another session can be opened in this process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    if gateway is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
