"""Functions of BINARY, and those that make one. Lengths and positions count bytes, from 1."""

from __future__ import annotations

import re
from base64 import b64decode

from cq.lang.functions.registry import OVERLOADS, Constants, Signature, scalar
from cq.lang.functions.signatures import fixed, with_optional
from cq.lang.functions.spark_text import spark_substring
from cq.lang.types import BIGINT, BINARY, INT64_MAX, VARCHAR, DataType, Kind

_BASE_64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"

OVERLOADS["length"] = (*OVERLOADS["length"], "octet_length")


def _all_binary(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    if not any(t.kind is Kind.BINARY for t in types) or any(t.kind not in {Kind.BINARY, Kind.NULL} for t in types):
        return None
    return Signature((BINARY,) * len(types), BINARY)


@scalar(
    "binary_concat",
    "binary_concat(binary, …), also as `concat` and `||`",
    _all_binary,
    spark=lambda _, args: f"concat({', '.join(args)})",
    native="concat",
    examples=[
        "X'00' || X'FF01' = X'00FF01'",
        "concat(X'61', X'', X'62') = X'6162'",
        "X'' || X'' = X''",
        "X'00' || null = null",
    ],
)
def binary_concat(*values: bytes) -> bytes:
    """The bytes joined together."""
    return b"".join(values)


OVERLOADS["concat"] = (*OVERLOADS["concat"], "binary_concat")


@scalar(
    "binary_substring",
    "binary_substring(binary, start [, length]), also as `substring`",
    with_optional((BINARY, BIGINT), (BIGINT,), BINARY),
    spark=spark_substring,
    native="binary_substring",
    examples=[
        "substring(X'0A0B0C', 2) = X'0B0C'",
        "substring(X'0A0B0C', 2, 1) = X'0B'",
        "substring(X'0A0B0C', 0, 2) = X'0A0B'",
        "substring(X'0A0B0C', -2, 1) = X'0B'",
        "substring(X'0A0B0C', -5, 3) = X'0A'",
        "substring(X'0A0B0C', 2, -1) = X''",
        "substring(X'0A0B0C', 9) = X''",
        "substring(X'0A0B0C', -9223372036854775807 - 1) = X'0A0B0C'",
        "substring(X'0A0B0C', 2, 9223372036854775807) = X'0B0C'",
        "substring(X'', 1, 1) = X''",
        "binary_substring(null, 1) = null",
    ],
)
def binary_substring(x: bytes, start: int, count: int = INT64_MAX) -> bytes:
    """`length` bytes from `start`, by default all that follow. 0 counts as 1; a negative start counts from the end."""
    first = start - 1 if start > 0 else len(x) + start if start < 0 else 0
    return x[max(0, first) :] if count == INT64_MAX else x[max(0, first) : max(0, first + count)]


OVERLOADS["substring"] = ("binary_substring",)


@scalar(
    "unhex",
    "unhex(text)",
    fixed(VARCHAR, returns=BINARY),
    spark="unhex({0})",
    native="unhex",
    aliases=("from_hex",),
    may_be_null=True,
    examples=[
        "unhex('0aFF') = X'0AFF'",
        "unhex('F') = X'0F'",
        "unhex('') = X''",
        "unhex('0g') = null",
        "unhex('0x0A') = null",
        "unhex(hex(X'00C3FF')) = X'00C3FF'",
        "unhex(null) = null",
    ],
)
def unhex(x: str) -> bytes | None:
    """The bytes of hexadecimal digits, the inverse of HEX; the first digit may stand alone. NULL if there is anything
    else."""
    if re.fullmatch("[0-9A-Fa-f]*", x) is None:
        return None
    return bytes.fromhex("0" * (len(x) % 2) + x)


@scalar(
    "unbase64",
    "unbase64(text)",
    fixed(VARCHAR, returns=BINARY),
    spark=f"if({{0}} rlike '\\\\A{_BASE_64.replace('{', '{{').replace('}', '}}')}\\\\z', unbase64({{0}}), null)",
    native="unbase64",
    aliases=("from_base64",),
    may_be_null=True,
    examples=[
        "unbase64('AP8=') = X'00FF'",
        "unbase64('/w==') = X'FF'",
        "unbase64('YWJj') = X'616263'",
        "unbase64('') = X''",
        "unbase64('AP8') = null",
        "unbase64('A===') = null",
        "unbase64('AP=8') = null",
        "unbase64('AP 8=') = null",
        "unbase64(null) = null",
    ],
)
def unbase64(x: str) -> bytes | None:
    """The bytes of padded base 64, the inverse of BASE64; NULL if it is anything else."""
    return b64decode(x) if re.fullmatch(_BASE_64, x) else None
