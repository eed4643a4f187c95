"""Patterns of TO_TIMESTAMP and DATE_FORMAT, texts that nearly match, and times at the edges: for every engine."""

from __future__ import annotations

from cq.lang.expressions import Call, Column, Expr, Literal
from cq.lang.functions import all_scalars
from cq.lang.types import TIMESTAMP, VARCHAR

READ = (
    "yyyy-MM-dd", "yyyyMMdd", "yyyyMMddHHmmss", "d/M/yyyy", "dd.MM.yy HH:mm:ss.SSS", "d MMM yyyy h:mm a",
    "MMMM d, yyyy", "yyyy.", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS", "yyyy-M", "H:m yyyy",
)  # fmt: skip
TEXTS = (
    "2024-02-29", "2023-02-29", "02024-02-29", "+2024-02-29", "+12024-02-29", "-0044-03-15", "-0000-03-15",
    "12024-01-01", "20240131", "120240131", "+120240131", "20240131123045", "2024013112304", "1/2/2024", "01/002/2024",
    "0000000000000000001/1/2024", "00000000000000000001/1/2024", "+1/1/2024", "29.02.24 23:59:59.5",
    "29.02.24 23:59:59.123", "29.02.24 23:59:59.1234", "29.02.24 23:59:59.", "29.02.24 24:00:00.0",
    "5 Feb 2024 1:04 pm", "5 feb 2024 12:04 AM", "5 FEB 2024 0:04 AM", "5 Feb 2024 13:04 AM", "5 February 2024 1:04 pm",
    "February 5, 2024", "MAY 31, 2024", "may 32, 2024", "Feb 5, 2024", "2024.", "-2024.", "99999.",
    "2024-02-29t10:11:12.5", "2024-02-29T10:11:12.1234567", "2024-02-29T10:11:60.0", "2024-1", "2024-13", "2024-0",
    "1:2 2024", "23:59 2024", "24:00 2024", "", " 2024-02-29", "2024-02-29 ", "294247-01-10", "+294247-01-10",
    "+294248-01-10", "٢٠٢٤-02-29", "-290308-12-21", "2024-2-29",
)  # fmt: skip
BEYOND = {"+294248-01-10", "-290308-12-21"}  # no TIMESTAMP; Spark stops there even if NULL is asked for
WRITTEN = (
    "yyyy-MM-dd HH:mm:ss.SSSSSS", "yy M d D h:m:s S a", "EEE E EE EEEE MMM MMMM", "DDD dd ''yyyy'' 'x''y' hh", "yyyy",
    "HH-H SSS SS", "ñ: yyyy", "",
)  # fmt: skip
MOMENTS = (
    0, -1, 1, 1709210096789012, 253402300800000000, -62135596800000001, -62167219200000000, -62200000000000000,
    -99999999999999999, 2**61, 1234567890123456, 1704067200000000 + 43_200_000_000,
)  # fmt: skip


def reading(pattern: str, name: str = "try_to_timestamp") -> Expr:
    """The text of column 0 parsed by a pattern."""
    return Call(TIMESTAMP, True, all_scalars()[name], (Column(VARCHAR, True, 0), Literal(VARCHAR, False, pattern)))


def writing(pattern: str) -> Expr:
    """The time of column 0 formatted by a pattern."""
    entry = all_scalars()["date_format"]
    return Call(VARCHAR, True, entry, (Column(TIMESTAMP, True, 0), Literal(VARCHAR, False, pattern)))
