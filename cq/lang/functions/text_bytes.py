"""Texts as numbers and bytes: code points, hexadecimal digits, digests of the UTF-8 bytes."""

from __future__ import annotations

import hashlib
import re
import string
import zlib
from base64 import b64encode
from urllib.parse import unquote_to_bytes

from cq.lang.functions.registry import OVERLOADS, Signature, scalar
from cq.lang.functions.signatures import fixed, text_or_binary
from cq.lang.types import BIGINT, INTEGER, VARCHAR, content_of
from cq.lang.xxhash import xxh64

_TEXT_TO_INTEGER = fixed(VARCHAR, returns=INTEGER)
_BYTES_TO_INTEGER = text_or_binary(INTEGER)
_BYTES_TO_TEXT = text_or_binary(VARCHAR)
_TEXT_TO_TEXT = fixed(VARCHAR, returns=VARCHAR)
_NUMBER_TO_TEXT = fixed(BIGINT, returns=VARCHAR)


@scalar(
    "ascii",
    "ascii(text)",
    _TEXT_TO_INTEGER,
    spark="ascii({0})",
    native="ascii",
    aliases=("unicode", "ord"),
    examples=["ascii('A') = 65", "ascii('€uro') = 8364", "ascii('') = 0", "ascii(null) = null"],
)
def ascii_(x: str) -> int:
    """The number of the first code point; 0 for ''."""
    return ord(x[0]) if x else 0


@scalar(
    "chr",
    "chr(number)",
    _NUMBER_TO_TEXT,
    spark="chr({0})",
    native="chr",
    aliases=("char",),
    examples=["chr(65) = 'A'", "chr(233) = 'é'", "chr(256 + 65) = 'A'", "chr(-1) = ''", "chr(null) = null"],
)
def chr_(x: int) -> str:
    """The character with this number modulo 256, as in Spark; '' for a negative one."""
    return chr(x & 255) if x >= 0 else ""


@scalar(
    "octet_length",
    "octet_length(text or binary)",
    _BYTES_TO_INTEGER,
    spark="octet_length({0})",
    native="octet_length",
    examples=[
        "octet_length('abc') = 3",
        "octet_length(X'00FF') = 2",
        "octet_length('ñ€') = 5",
        "octet_length('') = 0",
        "octet_length(null) = null",
    ],
)
def octet_length(x: str | bytes) -> int:
    """The number of bytes (of a text: in UTF-8)."""
    return len(content_of(x))


@scalar(
    "bit_length",
    "bit_length(text or binary)",
    _BYTES_TO_INTEGER,
    spark="bit_length({0})",
    native="bit_length",
    examples=[
        "bit_length('abc') = 24",
        "bit_length(X'00FF') = 16",
        "bit_length('ñ') = 16",
        "bit_length('') = 0",
        "bit_length(null) = null",
    ],
)
def bit_length(x: str | bytes) -> int:
    """The number of bits (of a text: in UTF-8)."""
    return len(content_of(x)) * 8


@scalar(
    "hex",
    "hex(integer, text or binary)",
    _NUMBER_TO_TEXT,
    spark="hex({0})",
    native="hex",
    aliases=("to_hex",),
    examples=[
        "hex(255) = 'FF'",
        "hex(0) = '0'",
        "hex(-1) = 'FFFFFFFFFFFFFFFF'",
        "hex('ñ1') = 'C3B131'",
        "hex(null) = null",
    ],
)
def hex_(x: int) -> str:
    """The number's 64 bits, or the bytes (of a text: in UTF-8), as hexadecimal digits."""
    return f"{x & (1 << 64) - 1:X}"


@scalar(
    "hex_text",
    "hex_text(text or binary), also as `hex`",
    _BYTES_TO_TEXT,
    spark="hex({0})",
    native="hex_text",
    examples=[
        "hex('abc') = '616263'",
        "hex(X'00FF') = '00FF'",
        "hex('ñ') = 'C3B1'",
        "hex('') = ''",
        "hex_text(null) = null",
    ],
)
def hex_text(x: str | bytes) -> str:
    """The bytes (of a text: in UTF-8) as hexadecimal digits."""
    return content_of(x).hex().upper()


OVERLOADS["hex"] = ("hex_text",)


@scalar(
    "bin",
    "bin(integer)",
    _NUMBER_TO_TEXT,
    spark="bin({0})",
    native="bin",
    examples=["bin(13) = '1101'", "bin(0) = '0'", "bin(-1) = repeat('1', 64)", "bin(null) = null"],
)
def bin_(x: int) -> str:
    """The number's 64 bits as binary digits, without leading zeros."""
    return f"{x & (1 << 64) - 1:b}"


@scalar(
    "md5",
    "md5(text or binary)",
    _BYTES_TO_TEXT,
    spark="md5({0})",
    native="md5",
    examples=[
        "md5('abc') = '900150983cd24fb0d6963f7d28e17f72'",
        "md5(X'FF') = '00594fd4f42ba43fc1ca0427a0576295'",
        "md5('') = 'd41d8cd98f00b204e9800998ecf8427e'",
        "md5(repeat('ñ', 32)) = '3aa26c7327440892f5fac89190c264b2'",
        "md5(null) = null",
    ],
)
def md5(x: str | bytes) -> str:
    """The MD5 digest of the bytes (of a text: in UTF-8) as hexadecimal digits."""
    return hashlib.md5(content_of(x), usedforsecurity=False).hexdigest()


@scalar(
    "sha1",
    "sha1(text or binary)",
    _BYTES_TO_TEXT,
    spark="sha1({0})",
    native="sha1",
    aliases=("sha",),
    examples=[
        "sha1('abc') = 'a9993e364706816aba3e25717850c26c9cd0d89d'",
        "sha1(X'FF') = '85e53271e14006f0265921d02d4d736cdc580b0b'",
        "sha1('') = 'da39a3ee5e6b4b0d3255bfef95601890afd80709'",
        "sha1(repeat('a', 119)) = 'ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56'",
        "sha1(null) = null",
    ],
)
def sha1(x: str | bytes) -> str:
    """The SHA-1 digest of the bytes (of a text: in UTF-8) as hexadecimal digits."""
    return hashlib.sha1(content_of(x), usedforsecurity=False).hexdigest()


@scalar(
    "sha256",
    "sha256(text or binary)",
    _BYTES_TO_TEXT,
    spark="sha2({0}, 256)",
    native="sha256",
    examples=[
        "sha256('abc') = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'",
        "sha256('') = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'",
        "sha256(repeat('a', 56)) = 'b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a'",
        "sha256(null) = null",
    ],
)
def sha256(x: str | bytes) -> str:
    """The SHA-256 digest of the bytes (of a text: in UTF-8) as hexadecimal digits."""
    return hashlib.sha256(content_of(x)).hexdigest()


_PLAIN_IN_URLS = frozenset(string.ascii_letters + string.digits + ".-*_")


def _spark_url_decode(_: Signature, args: tuple[str, ...]) -> str:
    """Spark's version, which puts U+FFFD for bytes that are not UTF-8, and accepts a sign as a digit."""
    (text,) = args
    replaced = f"contains(try_url_decode({text}), '\\uFFFD') and not upper({text}) rlike '\\uFFFD|%EF%BF%BD'"
    return f"if({text} rlike '%(?![0-9A-Fa-f]{{2}})' or ({replaced}), null, try_url_decode({text}))"


@scalar(
    "url_encode",
    "url_encode(text)",
    _TEXT_TO_TEXT,
    spark="url_encode({0})",
    native="url_encode",
    examples=[
        "url_encode('a b&c=é') = 'a+b%26c%3D%C3%A9'",
        "url_encode('A-Z_0.9*~') = 'A-Z_0.9*%7E'",
        "url_encode('') = ''",
        "url_encode(null) = null",
    ],
)
def url_encode(x: str) -> str:
    """The text encoded as a form field: + for a space, %XX for each byte that is not an ASCII letter, a digit or one of
    `.-*_`."""
    return "".join("+" if b == 32 else chr(b) if chr(b) in _PLAIN_IN_URLS else f"%{b:02X}" for b in x.encode())


@scalar(
    "url_decode",
    "url_decode(text)",
    _TEXT_TO_TEXT,
    spark=_spark_url_decode,
    native="url_decode",
    may_be_null=True,
    examples=[
        "url_decode('a+b%26c%3D%C3%A9') = 'a b&c=é'",
        "url_decode('%e2%82%ac') = '€'",
        "url_decode('100%') = null",
        "url_decode('%zz') = null",
        "url_decode(null) = null",
    ],
)
def url_decode(x: str) -> str | None:
    """The inverse of URL_ENCODE; NULL if a % is not followed by two hexadecimal digits, or if the bytes are not
    UTF-8."""
    if any(re.match("[0-9A-Fa-f]{2}", part) is None for part in x.split("%")[1:]):
        return None
    try:
        return unquote_to_bytes(x.replace("+", " ")).decode()
    except UnicodeDecodeError:
        return None


@scalar(
    "to_base64",
    "to_base64(text or binary)",
    _BYTES_TO_TEXT,
    spark="replace(base64(cast({0} as BINARY)), '\\r\\n', '')",
    native="to_base64",
    aliases=("base64",),
    examples=[
        "to_base64('abc') = 'YWJj'",
        "to_base64(X'00FF') = 'AP8='",
        "to_base64('ab') = 'YWI='",
        "to_base64('a') = 'YQ=='",
        "to_base64('') = ''",
        "to_base64('ñ~') = 'w7F+'",
        "to_base64(repeat('xyz', 30)) = repeat('eHl6', 30)",
        "to_base64(null) = null",
    ],
)
def to_base64(x: str | bytes) -> str:
    """The bytes (of a text: in UTF-8) in base 64, padded with `=`, on one line."""
    return b64encode(content_of(x)).decode()


@scalar(
    "xxhash64",
    "xxhash64(text or binary)",
    text_or_binary(BIGINT),
    spark="if({0} is null, null, xxhash64({0}))",
    native="xxhash64",
    examples=[
        "xxhash64('Spark') = -4294468057691064905",
        "xxhash64('') = -7444071767201028348",
        "xxhash64(repeat('abc', 30)) = -4296764107559630167",
        "xxhash64(null) = null",
    ],
)
def xxhash64(x: str | bytes) -> int:
    """The 64-bit xxHash (XXH64) of the bytes (of a text: in UTF-8) with seed 42, as in Spark."""
    digest = xxh64(content_of(x), 42)
    return digest - 2**64 if digest >= 2**63 else digest


@scalar(
    "crc32",
    "crc32(text or binary)",
    text_or_binary(BIGINT),
    spark="crc32({0})",
    native="crc32",
    examples=[
        "crc32('abc') = 891568578",
        "crc32(X'FF') = 4278190080",
        "crc32('') = 0",
        "crc32('ñ') = 493360488",
        "crc32(null) = null",
    ],
)
def crc32(x: str | bytes) -> int:
    """The CRC-32 checksum of the bytes (of a text: in UTF-8)."""
    return zlib.crc32(content_of(x))
