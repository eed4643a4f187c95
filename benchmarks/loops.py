"""The C++ loops beside this file: compiled when first needed, called on the buffers that the kernels read."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from cq.runtime.layout.abi import STRING_SLACK_BYTES

FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")
SOURCES = tuple(Path(__file__).with_name(name) for name in ("loops.cpp", "joined.cpp", "transacted.cpp"))


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """One of these functions: the columns it reads, in its order, and its parameters.

    columns: of the case's first input, or `stream.column`.
    validity: a column whose validity bits are its last argument.
    """

    function: str
    columns: tuple[str, ...]
    parameters: tuple[int, ...] = ()
    validity: str = ""


def compiler_version() -> str:
    """The first line of `g++ --version`; empty when there is no g++."""
    if shutil.which("g++") is None:
        return ""
    return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as directory:
        made = str(Path(directory) / "loops.so")
        subprocess.run(["g++", *FLAGS, "-o", made, *map(str, SOURCES)], check=True)
        return ctypes.CDLL(made)


class Loop:
    """A loop over a record batch of each stream, whose columns it reads in place.

    It gets the rows of the first one, and after its parameters those of the others.
    """

    def __init__(
        self, spec: LoopSpec, inputs: Mapping[str, pa.RecordBatch], result_columns: int, batch_rows: int
    ) -> None:
        self._function = getattr(_library(), spec.function)
        self._function.restype = ctypes.c_int64
        whole, *others = inputs.values()
        self._kept: list[pa.Buffer] = []
        addresses: list[int] = []
        for name in spec.columns:
            stream, _, column = name.rpartition(".")
            addresses += self._buffers((inputs[stream] if stream else whole).column(column))
        if spec.validity:
            bits = whole.column(spec.validity).buffers()[0]
            addresses.append(bits.address if bits is not None else 0)
        self._columns = (ctypes.c_void_p * len(addresses))(*addresses)
        parameters = (*spec.parameters, *(other.num_rows for other in others))
        self._parameters = (ctypes.c_int64 * max(1, len(parameters)))(*parameters)
        self._rows, self._batch_rows, self._results = whole.num_rows, batch_rows, result_columns

    def _buffers(self, column: pa.Array) -> list[int]:
        assert column.offset == 0, "a column with an offset"
        _, *buffers = column.buffers()
        if pa.types.is_list(column.type):
            assert column.values.null_count == 0 and column.values.offset == 0, "elements that are NULL"
            buffers = [buffers[0], buffers[-1]]
        if pa.types.is_string(column.type):
            buffers[1] = pa.py_buffer(memoryview(buffers[1]).tobytes() + bytes(STRING_SLACK_BYTES))
        self._kept += buffers
        return [b.address for b in buffers]

    def run(self) -> int:
        """The number of result rows."""
        return self._call(None)

    def sums(self) -> tuple[int, ...]:
        """The sum over every result column: words as they are, doubles in thousandths, text by its bytes."""
        sums = (ctypes.c_int64 * self._results)()
        self._call(sums)
        return tuple(sums)

    def _call(self, sums: ctypes.Array[ctypes.c_int64] | None) -> int:
        rows = ctypes.c_int64(self._rows), ctypes.c_int64(self._batch_rows)
        made = self._function(self._columns, *rows, self._parameters, sums)
        assert made >= 0, "the loop met an overflow"
        return int(made)


def result_sums(batches: Sequence[pa.RecordBatch]) -> tuple[int, ...]:
    """The same as `Loop.sums`, over record batches."""
    import numpy as np

    if not batches:
        return ()
    totals = []
    for column in pa.Table.from_batches(batches).columns:
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            totals.append(int(pa.compute.sum(pa.compute.binary_length(column)).as_py()))
            continue
        if pa.types.is_floating(kind):
            words = np.rint(column.to_numpy() * 1000).astype(np.int64)
        elif pa.types.is_decimal(kind):
            words = column.cast(pa.int64()).to_numpy()
        elif pa.types.is_timestamp(kind):
            words = column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        else:
            words = column.cast(pa.int64()).fill_null(0).to_numpy()
        totals.append(int(words.view(np.uint64).sum(dtype=np.uint64).view(np.int64)))
    return tuple(totals)
