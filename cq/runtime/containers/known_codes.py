"""What a table remembers about a dictionary: for each code, the entry whose key is that text.

If a source gives texts as codes and a dictionary, a text is hashed and compared once per code, not once per row. What
is remembered are addresses, so it is forgotten when entries move or one is deleted, and learned again. It is not part
of a snapshot, and it changes no result: an unknown entry is searched for as usual.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import fill, ld_i64, st_i64
from cq.runtime.containers.blocks import block_drop, block_new
from cq.runtime.containers.table_words import (
    TABLE_ASKED,
    TABLE_DICTIONARY,
    TABLE_KNOWN,
    TABLE_KNOWN_ROOM,
    TABLE_QUESTIONS,
)

# Texts of a dictionary per look-up before its codes are learned: emptying the places of this many takes about 4 ns, a
# search by hash 20 and more.
TEXTS_A_QUESTION = 16


@native("void(i64)", inline=True)
def table_forget(table: int) -> None:
    """Forget all entries: some have moved, or were deleted."""
    st_i64(table, TABLE_DICTIONARY, 0)
    st_i64(table, TABLE_QUESTIONS, 0)


@native("i64(i64, i64, i64)", inline=True)
def table_recall(table: int, dictionary: int, code: int) -> int:
    """The entry of the text with this code, or 0 if it is not known. dictionary: its number, not 0."""
    if ld_i64(table, TABLE_DICTIONARY) != dictionary:
        return 0
    return ld_i64(ld_i64(table, TABLE_KNOWN), code)


@native("i64(i64, i64, i64, i64, i64)", export=True)
def table_learn(table: int, dictionary: int, texts: int, code: int, entry: int) -> int:
    """Remember the entry for this code of a dictionary of this many texts and return 1; 0: nothing has changed.

    Nothing is learned about a dictionary of which few codes were requested, nor without memory.
    """
    if ld_i64(table, TABLE_DICTIONARY) != dictionary:
        if ld_i64(table, TABLE_ASKED) != dictionary:
            st_i64(table, TABLE_ASKED, dictionary)
            st_i64(table, TABLE_QUESTIONS, 0)
        questions = ld_i64(table, TABLE_QUESTIONS) + 1
        st_i64(table, TABLE_QUESTIONS, questions)
        if questions * TEXTS_A_QUESTION < texts or _room(table, texts) == 0:
            return 0
        fill(ld_i64(table, TABLE_KNOWN), 0, texts * 8)
        st_i64(table, TABLE_DICTIONARY, dictionary)
    st_i64(ld_i64(table, TABLE_KNOWN), code, entry)
    return 1


@native("i64(i64, i64)")
def _room(table: int, texts: int) -> int:
    """Make room for the codes of this many texts, uninitialised, and return 1; 0 without memory."""
    if texts <= ld_i64(table, TABLE_KNOWN_ROOM):
        return 1
    st_i64(table, TABLE_DICTIONARY, 0)
    block_drop(ld_i64(table, TABLE_KNOWN))
    st_i64(table, TABLE_KNOWN, block_new(texts * 8, 0))
    st_i64(table, TABLE_KNOWN_ROOM, texts if ld_i64(table, TABLE_KNOWN) != 0 else 0)
    return 1 if ld_i64(table, TABLE_KNOWN) != 0 else 0
