"""Convert Spark's exceptions to our errors: one code, one line of cause, no stack."""

from __future__ import annotations

import contextlib
import re
import subprocess
from typing import Final

from cq.errors import CqError, DataError, Diagnostic, EngineError
from cq.spark.jre import Jvm, log_tail

# Spark's error conditions for faults of the data; sub-conditions (`X.WITH_SUGGESTION`) count as `X`.
DATA_FAULTS: Final = {
    "ARITHMETIC_OVERFLOW": "CQ0705",
    "BINARY_ARITHMETIC_OVERFLOW": "CQ0705",
    "DATETIME_FIELD_OUT_OF_BOUNDS": "CQ0708",
    "DATETIME_OVERFLOW": "CQ0705",
    "INTERVAL_ARITHMETIC_OVERFLOW": "CQ0705",
    "NUMERIC_VALUE_OUT_OF_RANGE": "CQ0705",
    "DIVIDE_BY_ZERO": "CQ0706",
    "INTERVAL_DIVIDED_BY_ZERO": "CQ0706",
    "REMAINDER_BY_ZERO": "CQ0706",
    "CANNOT_PARSE_TIMESTAMP": "CQ0707",
    "CAST_INVALID_INPUT": "CQ0707",
    "CAST_OVERFLOW": "CQ0707",
    "INVALID_ARRAY_INDEX": "CQ0708",
    "INVALID_UTF8_STRING": "CQ0707",
    "INVALID_FORMAT": "CQ0708",
    "INVALID_FRACTION_OF_SECOND": "CQ0708",
    "INVALID_INDEX_OF_ZERO": "CQ0708",
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": "CQ0708",
    "INVALID_PARAMETER_VALUE": "CQ0708",
}
LONGEST_CAUSE: Final = 400  # characters of a cause; Spark lists every column of a table in some

# Where Spark's message turns from the problem to advice about its own functions and settings.
ADVICE: Final = re.compile(
    r" Use (?:the SQL function )?[`']| If necessary set | Correct the value | Verify the spelling | To tolerate "
    r"| ?SQLSTATE: "
)
RAISED_BY_US: Final = re.compile(r"\[USER_RAISED_EXCEPTION\] (CQ07\d\d): ")  # raise_error('CQ0709: …')
RAISED_BY_FUNCTION: Final = re.compile(r"^ArithmeticError: \[(CQ07\d\d)\] ", re.MULTILINE)  # one of the user's
DEATH_SECONDS: Final = 5  # from a lost connection until the process can be reaped: a few milliseconds when idle
OUT_OF_MEMORY_STATUS: Final = 3  # the exit message of the JVM under -XX:+ExitOnOutOfMemoryError


def translate(error: BaseException, jvm: Jvm | None) -> CqError:
    """The `DataError` or `EngineError` for an exception of Spark. jvm: the one it ran in; its last words may be
    quoted."""
    if isinstance(error, CqError):
        return error
    if jvm is not None and _is_gone(jvm, error):
        return _jvm_gone(jvm)
    at_fault = _at_fault(error)
    condition = _condition(at_fault)
    code = _data_fault(at_fault)
    if code is not None:
        return DataError(Diagnostic(code, _cause(at_fault), severity="data error"))
    label = f"Spark failed with {condition}" if condition else "Spark failed"
    return EngineError(Diagnostic("CQ0902", f"{label}: {_cause(at_fault)}"))


def _at_fault(error: BaseException) -> BaseException:
    """The most informative of `error` and its causes: a data fault, else the innermost one with a condition.

    A failure in a sub-query or a broadcast arrives wrapped in exceptions that only say that.
    """
    chain = [error]
    if "Py4JJavaError" in _names(error):
        from pyspark.errors.exceptions.captured import convert_exception

        chain = [convert_exception(error.java_exception)]  # type: ignore[attr-defined]
    while (cause := getattr(chain[-1], "_cause", None)) is not None:
        chain.append(cause)
    for tells in (_data_fault, _condition):
        told = [link for link in chain if tells(link)]
        if told:
            return told[-1]
    return chain[-1]


def _data_fault(error: BaseException) -> str | None:
    """Our code for a data fault; None for anything else."""
    condition = _condition(error)
    if not condition and "ArithmeticException" in _names(error) and "overflow" in str(error):
        return "CQ0705"  # Java's own, from the arithmetic of timestamps: it has no condition
    if "PythonException" in _names(error):
        raised = RAISED_BY_FUNCTION.search(str(error))
    else:
        raised = RAISED_BY_US.match(str(error)) if condition == "USER_RAISED_EXCEPTION" else None
    return raised[1] if raised else DATA_FAULTS.get(condition.split(".")[0])


def _is_gone(jvm: Jvm, error: BaseException) -> bool:
    """Whether the JVM has ended. A lost connection is noticed first, so the JVM gets a moment to be reaped."""
    names = _names(error)
    if isinstance(error, OSError | EOFError) or ("Py4JError" in names and "Py4JJavaError" not in names):
        with contextlib.suppress(subprocess.TimeoutExpired):
            jvm.process.wait(DEATH_SECONDS)
    return jvm.process.poll() is not None


def _jvm_gone(jvm: Jvm) -> EngineError:
    status = jvm.process.returncode
    said = log_tail(jvm.log)
    if status == OUT_OF_MEMORY_STATUS or "java.lang.OutOfMemoryError" in said:
        message = f"Spark's Java process ran out of its heap of {jvm.heap}"
        return EngineError(Diagnostic("CQ0801", message, help=("set CQ_SPARK_HEAP to more, such as 4g",)))
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return EngineError(Diagnostic("CQ0902", f"Spark's Java process {how}: {said}"))


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _condition(error: BaseException) -> str:
    """Spark's name for the fault, such as `DIVIDE_BY_ZERO`; empty when it gives none."""
    ask = getattr(error, "getCondition", None)
    return str(ask() or "") if ask is not None else ""


def _cause(error: BaseException) -> str:
    """The first sentence of Spark's message, on one line: no stack, no advice about Spark's own settings."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "PythonException" in _names(error):  # a Python function failed: the last line of its traceback says why
        lines = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)][-1:] or lines
    first = lines[0] if lines else type(error).__name__
    first = re.sub(r"^(?:ArithmeticError: )?\[[A-Z0-9_.]+\]\s*(?:CQ07\d\d: )?", "", first)
    first = ADVICE.split(first, maxsplit=1)[0].strip().rstrip(".")
    return first if len(first) <= LONGEST_CAUSE else first[: LONGEST_CAUSE - 1] + "…"
