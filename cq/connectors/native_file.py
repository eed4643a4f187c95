"""An open file for Arrow's own threads, which must not depend on the interpreter.

Arrow reads footers and columns from threads of its pool and may drop the last reference to a file there. With a Python
file those threads wait for the interpreter; one still waiting at exit aborts the process ("terminate called without an
active exception"), after all rows were right. A third of damaged IPC files are dropped that way.
"""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

DESCRIPTORS = "/dev/fd"


def native(file: BinaryIO) -> pa.NativeFile:
    """The same file from its beginning, opened by its descriptor: the checks made when it was opened still hold.

    It has its own position, and the caller closes it. Where the system exposes no descriptors it reads `file`.
    """
    try:
        return pa.OSFile(f"{DESCRIPTORS}/{file.fileno()}")
    except OSError:
        return pa.PythonFile(file, mode="r")
