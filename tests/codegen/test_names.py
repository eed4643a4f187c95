"""Generated code says what it touches by names of ours, and begins with their values."""

import ast
import copy
import json
import pickle
import re
import textwrap

import pytest

from cq.codegen.printing import Printer
from cq.codegen.writer import Writer
from cq.compiler.passes import compile as compile_query
from cq.runtime.base.interpret import interpret_stage, stage_constants, stage_scope
from cq.runtime.containers import (
    intervals,
    log_words,
    multimap_words,
    panes,
    ranks_words,
    runs_words,
    table_words,
    waiting,
)
from cq.runtime.layout import abi
from cq.runtime.layout.words import Word, beside, name_words

HOSTILE = """
CREATE STREAM bids ("PANES_LO" BIGINT, "import os" BIGINT, "x"" = 1 #" VARCHAR, "DONE" TIMESTAMP,
                    WATERMARK FOR "DONE" AS "DONE") WITH (path = 'bids.csv');
SELECT "x"" = 1 #", SUM("PANES_LO") AS "STATE_ROW", COUNT(DISTINCT "import os") AS "n", MIN("x"" = 1 #") AS "NEVER"
FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR("DONE"), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, "x"" = 1 #";
"""


def written(query):
    return [stage for pipeline in compile_query(query).after("emit") for stage in pipeline.stages]


def made(*templates, **fills):
    writer = Writer()
    with writer.function("f", ("state",)):
        for template in templates:
            writer.code(template, **fills)
    return writer.finish(stage_scope())


def printed(body):
    return Printer(("range",)).module(ast.parse("def f():\n" + textwrap.indent(body, "    ")).body)


# -- words -----------------------------------------------------------------------------------------------------------


def test_a_word_is_the_int_it_stands_for():
    word = Word(7, "SEVEN")
    assert word == 7 and repr(word) == f"{word}" == json.dumps(word) == "7"
    assert {7: "x"}[word] == "x" and type(word + 1) is int


def test_a_copied_word_keeps_its_name():
    word = Word(7, "SEVEN")
    for other in (copy.deepcopy(word), pickle.loads(pickle.dumps(word))):  # noqa: S301  our own bytes
        assert (other, other.name) == (7, "SEVEN")


def test_a_word_beside_another_is_named_after_it():
    assert (beside(Word(7, "A"), 2, "HI"), beside(Word(7, "A"), 2, "HI").name) == (9, "A_HI")
    assert type(beside(7, 2, "HI")) is int


def test_constants_of_a_module_are_named_and_one_declared_as_another_has_its_own_name():
    scope = {"TABLE_COUNT": 4, "BUFFER_COUNT": Word(4, "TABLE_COUNT"), "count": 3, "_HIDDEN": 2, "FLAG": True}
    name_words(scope)
    assert scope["TABLE_COUNT"].name == "TABLE_COUNT" and scope["BUFFER_COUNT"].name == "BUFFER_COUNT"
    assert not any(isinstance(scope[n], Word) for n in ("count", "_HIDDEN", "FLAG"))


@pytest.mark.parametrize(
    ("module", "structures"),
    [
        (abi, "BATCH|SEGMENT|COLUMN|PORT|OUT|POSITION|STATE"),
        (table_words, "TABLE|ENTRY"),
        (panes, "PANES|PANE"),
        (waiting, "BUFFER|RECORD"),
        (log_words, "LOG|CHUNK|RECORD"),
        (multimap_words, "MULTIMAP|ROW|ENDS"),
        (intervals, "INTERVALS|INTERVAL"),
        (runs_words, "RUNS|RUN|ROW|WAIT"),
        (ranks_words, "RANKS|RANK|RANKED|ITEM"),
    ],
)
def test_every_word_of_a_layout_knows_its_name(module, structures):
    declared = {n: v for n, v in vars(module).items() if re.match(rf"({structures})_", n)}
    assert declared and all(isinstance(v, Word) and v.name == n for n, v in declared.items())


# -- the writer ------------------------------------------------------------------------------------------------------


def test_a_named_number_is_written_by_its_name_and_declared_once():
    source = made("st_i64(state, W, W)\nreturn NEVER", W=Word(3, "PLACE"), NEVER=abi.NEVER)
    assert source == (
        "NEVER = 9223372036854775807\nPLACE = 3\n\ndef f(state):\n    st_i64(state, PLACE, PLACE)\n    return NEVER\n"
    )


def test_two_numbers_of_one_name_get_different_ones():
    source = made("st_i64(state, A, B)\nreturn C", A=Word(3, "KEY0"), B=Word(5, "KEY0"), C=Word(3, "KEY0"))
    assert stage_constants(source) == {"KEY0": 3, "KEY0_2": 5}
    assert "st_i64(state, KEY0, KEY0_2)\n    return KEY0\n" in source


def test_an_error_code_is_written_by_its_name():
    assert "return NO_MEMORY" in made("return CODE", CODE=abi.ErrorCode.NO_MEMORY)


def test_the_least_number_can_be_named():
    source = made("return LEAST", LEAST=Word(-(2**63), "LEAST"))
    assert interpret_stage(source)["f"](0) == -(2**63)


@pytest.mark.parametrize("name", ["lower", "A B", "A\nimport os", "_A", "Ä", "A" * 65, "A=1"])
def test_a_constant_whose_name_is_not_ours_is_refused(name):
    with pytest.raises(AssertionError, match="a constant named"):
        made("return X", X=Word(1, name))


@pytest.mark.parametrize(
    "body", ["A = 1\nreturn A", "return B", "return A()", "for A in range(3):\n    pass", "A = 1\nwhile A:\n    pass"]
)
def test_a_name_that_is_none_of_ours_is_refused(body):
    with pytest.raises(AssertionError, match=r"generated code (names|calls)"):
        printed(body)


def test_a_constant_beyond_64_bits_is_refused():
    with pytest.raises(AssertionError, match="beyond 64 bits"):
        made("return X", X=Word(2**63, "X"))


# -- whole stages ----------------------------------------------------------------------------------------------------


def test_no_name_of_a_query_is_in_generated_code():
    for stage in written(HOSTILE):
        constants = stage_constants(stage.module)
        assert constants["PANES_LO"] == panes.PANES_LO and constants["DONE"] == abi.DONE
        assert constants["NEVER"] == abi.NEVER and constants["STATE_ROW"] == abi.STATE_ROW
        assert "import" not in stage.module and "x" not in re.findall(r"\b\w+\b", stage.module)


def test_words_of_the_contract_are_not_written_as_numbers():
    """Loads and stores of a stage's own structures name the word: numbers count things."""
    for stage in written(HOSTILE):
        places = re.findall(r"(?:ld|st)_i64\((\w+), (\d+)[,)]", stage.module)
        assert {of for of, _ in places} <= {"constants", *re.findall(r"records\d+", stage.module)}, places


def _named(constants, slot):
    """The words of a state that are named after such a slot, which operators have one each of."""
    return {value for name, value in constants.items() if re.fullmatch(f"STATE_{slot.upper()}[0-9]*", name)}


def test_slots_of_the_state_are_named_after_what_they_hold():
    for stage in written(HOSTILE):
        constants = stage_constants(stage.module)
        assert all(slot.offset in _named(constants, slot.name) for slot in stage.slots)
