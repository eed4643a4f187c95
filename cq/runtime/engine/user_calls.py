"""User functions behind addresses that kernels call: read and write their records, call Python.

A kernel's thread takes the GIL while Python runs; others need nothing that it holds meanwhile.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from cq.lang.functions import Failure
from cq.lang.types import DataType, Kind, Physical, content_of, with_content
from cq.runtime.base.host import Host
from cq.runtime.layout.abi import ERROR_CODES, ErrorCode
from cq.runtime.layout.pipeline import StageSpec, UserCall

_WORD, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")
_CODES = {text: code for code, text in ERROR_CODES.items()}


def place_constants(host: Host, stage: StageSpec) -> int:
    """The address of a stage's constants, with the addresses of the user functions in them."""
    content = bytearray(stage.constants)
    for call in stage.user_calls:
        _WORD.pack_into(content, 8 * call.word, host.callback(_asking(host, call)))
    return host.place(bytes(content))


def _asking(host: Host, call: UserCall) -> Callable[[int, int], int]:
    """What a kernel calls: it puts the function's result for the values of a record into the record."""
    function = call.function
    words = struct.Struct(f"<{call.result_null}q")
    readers = [_reader(host, p.type) for p in function.parameters]

    def ask(state: int, record: int) -> int:
        host.said.pop(state, None)
        try:
            found = words.unpack(host.read(record, words.size))
            values = [read(found[2 * n], found[2 * n + 1]) for n, read in enumerate(readers)]
            if function.sees_null:
                values = [None if null else v for v, null in zip(values, found[call.null(0) :], strict=True)]
            made = function.compute(*values)
            results = zip(function.results, made if function.moves else (made,), strict=True)
            result = b"".join(bytes(16) if v is None else _words(host, state, s.type, v) for s, v in results)
        except Failure as failure:
            host.said[state] = failure.message
            return _CODES[failure.code]
        except MemoryError:
            return ErrorCode.NO_MEMORY
        except Exception:  # native code knows no exceptions
            return ErrorCode.BAD_ARGUMENT
        host.write(record + 8 * call.result_null, _WORD.pack(made is None) + result)
        return ErrorCode.NONE

    return ask


def _reader(host: Host, type_: DataType) -> Callable[[int, int], Any]:
    """Makes the physical value from two words of a record; those of a NULL are harmless."""
    match type_.physical:
        case Physical.F64:
            return lambda low, _: _DOUBLE.unpack(_WORD.pack(low))[0]
        case Physical.BYTES:
            return lambda low, high: with_content(type_, host.read(low, high))
        case Physical.I128:
            return lambda low, high: high << 64 | low % 2**64
        case _ if type_.kind is Kind.BOOLEAN:
            return lambda low, _: bool(low)
        case _:
            return lambda low, _: low


def _words(host: Host, state: int, type_: DataType, value: Any) -> bytes:
    """The two words of a physical value; a text's bytes live for the step."""
    match type_.physical:
        case Physical.F64:
            return _DOUBLE.pack(value) + bytes(8)
        case Physical.BYTES:
            content = content_of(value)
            address = host.function("step_bytes")(state, len(content))
            if not address:
                raise MemoryError
            host.write(address, content)
            return struct.pack("<qq", address, len(content))
        case Physical.I128:
            return int(value).to_bytes(16, "little", signed=True)
        case _:
            return struct.pack("<qq", int(value), 0)
