"""Accumulators that grow with their group: lists of its values, sketches of them, and texts and arrays made from them.

The words of these accumulators lead to a list (cq/runtime/containers/lists.py).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import ClassVar

from cq.codegen.state.accumulators import Accumulator, Entry
from cq.codegen.state.hash_tables import as_words
from cq.codegen.values import Scope, Val, value_words
from cq.codegen.writer import expr
from cq.errors import NOWHERE
from cq.lang.aggregates.sketches import TEXT_FACTOR
from cq.lang.types import Kind, Physical
from cq.runtime.containers import lists
from cq.runtime.layout.abi import ErrorCode


class OrderedArguments(Accumulator):
    """All arguments, as words of the order of their values: a list (cq/runtime/containers/lists.py)."""

    names: ClassVar[tuple[str, ...]] = ("VALUES", "VALUES_PLACE", "VALUES_USED", "VALUES_ORDERED")

    @property
    def words(self) -> int:
        return lists.LIST_WORDS

    @property
    def strings(self) -> tuple[int, ...]:
        return (self.word,)

    @property
    def lists(self) -> tuple[int, ...]:
        return (self.word,)

    def list(self, e: Entry) -> ast.expr:
        """The address of the list."""
        return expr("E + W * 8", E=e.address, W=self._word(0))

    def used(self, e: Entry) -> ast.expr:
        """The number of bytes in use."""
        return self.at(e, lists.LIST_USED)

    def needs(self, scope: Scope, done: ast.expr) -> None:
        """Write that the run ends, out of memory, if this is 0."""
        with scope.when(expr("D == 0", D=done)):
            scope.fail(ErrorCode.NO_MEMORY, "values of a group", NOWHERE)

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        (word,) = as_words(scope, value)
        if value.type.is_float:
            word = expr("ordered_bits(W)", W=word)
        self.needs(scope, expr("list_add(T, L, W)", T=e.table, L=self.list(e), W=word))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        mine, theirs = self.list(e), self.list(other)
        self.needs(scope, expr("list_merge(T, L, O, M)", T=e.table, L=mine, O=other.table, M=theirs))

    def value(self, scope: Scope, word: ast.expr) -> tuple[ast.expr, ...]:
        """The value that a word of the list stands for."""
        type_ = self.args[0].type
        word = scope.let(word, "word")
        if type_.is_float:
            return (scope.let(expr("bits_f64(ordered_bits(W))", W=word), "value"),)
        return (expr("W != 0", W=word) if type_.kind is Kind.BOOLEAN else word,)


class Sketch(OrderedArguments):
    """The approximate number of different arguments: cq/runtime/containers/sketches.py."""

    names = ("SKETCH", "SKETCH_PLACE", "SKETCH_BYTES", "SKETCH_ORDERED")
    lists = ()

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        if value.type.physical is Physical.BYTES:
            address, length = value.parts
            word = expr("hash_bytes(A, N)", A=address, N=length)
        else:
            word, *high = as_words(scope, value)
            if high:  # nothing if one word holds the value
                beyond = expr("H - (L >> 63)", H=high[0], L=word)
                word = expr("L ^ wmul(B, FACTOR)", L=word, B=beyond, FACTOR=TEXT_FACTOR - (1 << 64))
        self.needs(scope, expr("sketch_add(T, L, W)", T=e.table, L=self.list(e), W=word))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        mine, theirs = self.list(e), self.list(other)
        self.needs(scope, expr("sketch_merge(T, L, O, M)", T=e.table, L=mine, O=other.table, M=theirs))


class JoinedText(OrderedArguments):
    """A text made of texts, each but the first after its separator."""

    names = ("TEXT", "TEXT_PLACE", "TEXT_BYTES", "TEXT_ORDERED", "TEXT_IS_THERE")

    @property
    def words(self) -> int:
        return lists.LIST_WORDS + 1

    def is_there(self, e: Entry) -> ast.expr:
        return expr("H != 0", H=self.at(e, lists.LIST_WORDS))

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        text, separator = values
        with scope.when(self.is_there(e)):
            self._append(scope, e, separator)
        self._append(scope, e, text)
        self.put(scope, e, 1, lists.LIST_WORDS)

    def _append(self, scope: Scope, e: Entry, text: Val) -> None:
        address, length = text.parts
        self.needs(scope, expr("list_append(T, L, A, N)", T=e.table, L=self.list(e), A=address, N=length))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        raise AssertionError("texts by position in panes that are merged")


class ListedValues(OrderedArguments):
    """All values of the argument, NULLs too, by position: its words and one that is 1 for NULL; for a text its length,
    -1 for NULL, and its bytes. cq/runtime/values/array_building.py makes an array from them."""

    names = ("ITEMS", "ITEMS_PLACE", "ITEMS_BYTES", "ITEMS_ORDERED")
    keeps_null = True

    def add(self, scope: Scope, e: Entry, values: Sequence[Val]) -> None:
        (value,) = values
        null = value.null if value.null is not None else ast.Constant(False)
        if value.type.physical is not Physical.BYTES:
            for word in value_words(value):
                self._put(scope, e, expr("pick(N, 0, W)", N=null, W=word))
            self._put(scope, e, expr("pick(N, 1, 0)", N=null))
            return
        address, length = value.parts
        size = scope.let(expr("pick(N, 0, L)", N=null, L=length), "size")
        self._put(scope, e, expr("pick(N, -1, L)", N=null, L=length))
        self.needs(scope, expr("list_append(T, L, A, N)", T=e.table, L=self.list(e), A=address, N=size))

    def _put(self, scope: Scope, e: Entry, word: ast.expr) -> None:
        self.needs(scope, expr("list_add(T, L, W)", T=e.table, L=self.list(e), W=word))

    def merge(self, scope: Scope, e: Entry, other: Entry) -> None:
        raise AssertionError("values by position in panes that are merged")
