"""An open file for Arrow's own threads, which must not need the interpreter.

Arrow reads footers and columns from threads of its pool and may drop the last reference to a file there. With a Python
file those threads wait for the interpreter; one that still does when the process ends aborts it ("terminate called
without an active exception"), after all rows were right. Of damaged IPC files a third are dropped so.
"""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa

DESCRIPTORS = "/dev/fd"


def native(file: BinaryIO) -> pa.NativeFile:
    """The same file from its beginning, opened by its descriptor: the checks made when it was opened still hold.

    It has a position of its own and is the caller's to close. Where the system shows no descriptors it reads `file`.
    """
    try:
        return pa.OSFile(f"{DESCRIPTORS}/{file.fileno()}")
    except OSError:
        return pa.PythonFile(file, mode="r")
