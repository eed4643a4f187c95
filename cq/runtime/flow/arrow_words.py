"""The words of Arrow's C Data Interface, and the layouts of columns as native code names them."""

from __future__ import annotations

from cq.runtime.layout.abi import Storage
from cq.runtime.layout.words import Struct

# a Storage as native code may name it
BIT, I8, I16, I32, I64, F32, F64, I128, UTF8 = (int(kind) for kind in Storage)

# struct ArrowArray, in words
_arrow = Struct("ARROW")
ARROW_LENGTH = _arrow.word()
ARROW_NULL_COUNT = _arrow.word()
ARROW_OFFSET = _arrow.word()
ARROW_BUFFER_COUNT = _arrow.word()
ARROW_CHILD_COUNT = _arrow.word()
ARROW_BUFFERS = _arrow.word()
ARROW_CHILDREN = _arrow.word()
ARROW_DICTIONARY = _arrow.word()
ARROW_RELEASE = _arrow.word()
ARROW_PRIVATE = _arrow.word()
ARROW_WORDS = _arrow.size()

_buffers = Struct("BUFFERS")  # the target of ARROW_BUFFERS
BUFFERS_VALIDITY = _buffers.word()
BUFFERS_VALUES = _buffers.word()  # for texts and lists: where each begins
BUFFERS_TEXTS = _buffers.word()  # the bytes of texts
BUFFERS_WORDS = _buffers.size()
