"""The planner keeps within what the binary contract has room for, which it does not know: here its limits are tied to
the words and bits of that."""

from __future__ import annotations

from cq.codegen.state.hash_tables import NULLS_A_WORD
from cq.codegen.state.keyed_rows import KeyedLayout
from cq.lang.schema import Field
from cq.lang.types import VARCHAR
from cq.planner.physical.branches import MOST_BRANCHES
from cq.planner.physical.choose import MOST_PARTS
from cq.planner.physical.complete import MOST_SOURCES
from cq.planner.physical.transactions import MOST_COLUMNS, MOST_KEY_COLUMNS, MOST_TABLES
from cq.planner.plan.transactions import KeyedTable
from cq.runtime.engine.ways import deals
from cq.runtime.flow.admission import MOST_ENDED
from cq.runtime.flow.merged_lanes import WIDEST_SCATTER
from cq.runtime.layout.chains import TAG_KEY_MASK, TAG_TABLE_SHIFT, TAG_WORDS_MASK


def test_parts_by_key_are_as_many_as_the_byte_of_a_row_tells_apart() -> None:
    assert MOST_PARTS == deals.MOST_PARTS == 2**8 - 1


def test_sources_that_may_end_first_have_a_bit_each() -> None:
    assert MOST_SOURCES == MOST_ENDED


def test_rows_of_as_many_branches_as_there_may_be_are_scattered() -> None:
    assert MOST_BRANCHES <= WIDEST_SCATTER


def test_tables_of_transactions_are_no_more_than_a_tag_tells_apart() -> None:
    assert MOST_TABLES == (1 << 63 - TAG_TABLE_SHIFT) - 1


def test_the_widest_table_of_transactions_has_no_more_words_than_a_tag_says() -> None:
    fields = [Field(f"c{n}", VARCHAR, n >= MOST_KEY_COLUMNS) for n in range(MOST_COLUMNS)]
    widest = KeyedLayout.of(KeyedTable("t", tuple(fields), tuple(range(MOST_KEY_COLUMNS))))
    assert widest.shape.entry_words <= TAG_WORDS_MASK
    assert widest.shape.key_words <= min(TAG_KEY_MASK, NULLS_A_WORD), "a bit of one word for each word of a key"
