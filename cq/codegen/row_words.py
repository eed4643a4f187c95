"""A column's value as words, to pass it to another function, and back."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from cq.codegen.values import Scope, Val, value_words
from cq.codegen.writer import expr
from cq.lang.schema import Field
from cq.lang.types import Kind, Physical


def word_names(field: Field, column: str) -> list[str]:
    """A name for each word. column: how they begin."""
    two = field.type.physical in (Physical.BYTES, Physical.I128)
    value = ["low", "high"] if two else ["value"]
    return [f"{column}_{part}" for part in (*value, *(["null"] if field.nullable else []))]


def words_of(field: Field, value: Val) -> Iterator[ast.expr]:
    """The words of a column's value; the last one tells whether it is NULL, if it can be.

    MAX() OVER () of no rows is NULL in a column that is never NULL: there is no row beside which anybody sees it.
    """
    yield from value.parts if value.type.physical is Physical.BYTES else value_words(value)
    if field.nullable:
        yield ast.Constant(0) if value.null is None else expr("pick(N, 1, 0)", N=value.null)


def value_of(scope: Scope, field: Field, names: Sequence[str]) -> Val:
    """The value whose words these are."""
    words: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    null = scope.let(expr("N != 0", N=words.pop()), "null") if field.nullable else None
    if field.type.is_float:
        words = [scope.let(expr("bits_f64(X)", X=words[0]))]
    elif field.type.kind is Kind.BOOLEAN:
        words = [scope.let(expr("X != 0", X=words[0]))]
    return Val(field.type, tuple(words), null)
