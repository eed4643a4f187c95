"""The Arrow IPC format, for code that opens inputs."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

from cq.connectors.arrow.source import ipc_batches, read_arrow
from cq.connectors.first_bytes import ARROW_FILE
from cq.connectors.readings.protocol import TypedReading


def _schema(file: pa.NativeFile | BinaryIO, name: str) -> pa.Schema:
    return ipc_batches(file, name)[0]


def _streams(head: bytes) -> bool:
    """Whether it is the stream format; a file's footer has to be read first."""
    return not head.startswith(ARROW_FILE)


READING = TypedReading(read_arrow, _schema, _streams)
