"""JSON in texts: kernels against the reference on random texts, depth, and what is refused."""

from __future__ import annotations

import random
import re

import pytest
from examples import bound
from expression_kernels import Kernels
from random_json import CALLS, document

from cq.errors import CqError
from cq.lang.expressions import format_expr
from cq.lang.functions.json_text import MOST_DEPTH, get_json_object, json_valid, path_of
from cq.reference.evaluate import evaluate

DEEP = "[" * MOST_DEPTH + "]" * MOST_DEPTH
CORNERS = ("", " ", "{", "[", '"', "\\", "{}", "[]", "[[],{}]", '{"a":{}}', '{"a":[]}', DEEP, f"[{DEEP}]", '{"a":1}{}')


@pytest.mark.parametrize(("way", "count"), [("interpreted", 250), ("compiled", 1200)])
def test_kernels_give_what_the_reference_gives(way: str, count: int) -> None:
    rng = random.Random(1)
    texts = [*CORNERS, *(document(rng) for _ in range(count))]
    with getattr(Kernels(CALLS), way)() as run:
        for number, expr in enumerate(CALLS):
            for text in texts:
                assert run(number, (text,)) == evaluate(expr, (text,)), (format_expr(expr), text)


def test_most_of_the_random_texts_are_json_and_some_are_not() -> None:
    rng = random.Random(1)
    good = sum(json_valid(document(rng)) for _ in range(300))
    assert 150 < good < 290


def test_the_first_field_counts_under_which_the_rest_is_found() -> None:
    assert get_json_object('{"a": null, "a": {"b": 1}, "a": {"c": 2}, "a": {"c": 3}}', "$.a.c") == "2"


def test_a_path_is_names_and_numbers_of_elements() -> None:
    assert path_of("$.a.b[0]['c d'][\"e.f\"]") == ("a", "b", 0, "c d", "e.f")
    for text in ("", "a", "$.", "$a", "$..a", "$.*", "$[*]", "$[-1]", "$['a", "$.a?", "$[99999999999]"):
        assert path_of(text) is None, text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("json_value('{}', 'a')", "'a' is not a path to one value"),
        ("json_value('{}', lower('$.A'))", "JSON_VALUE needs a literal path"),
        ("'{}' -> 'a'", "-> returns JSON, a type that is not supported yet"),
        ("'{}' ->> 'a*'", "'$['a*']' is not a path to one value"),
        ("json_extract('{}', '$.a')", "write GET_JSON_OBJECT(x, '$.a')"),
    ],
)
def test_a_call_is_refused_with_the_reason(call: str, message: str) -> None:
    with pytest.raises(CqError) as caught:
        bound(call)
    assert re.search(re.escape(message), str(caught.value))


def test_an_arrow_takes_text_or_a_number_and_binds_before_a_cast() -> None:
    values = bound("""'{"a": [5, "x"]}' -> 'a' ->> 0::INTEGER + 1""", """'{"a": {"b": "c"}}' ->> '$.a.b' || '!'""")
    assert [evaluate(v) for v in values] == [6, "c!"]
