"""The heap of due times against a sorted list."""

from __future__ import annotations

import random

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64
from cq.runtime.containers.heap import (
    HEAP_ITEMS,
    HEAP_NEXT,
    heap_drop,
    heap_new,
    heap_pop,
    heap_push,
    heap_replace,
)
from cq.runtime.layout.abi import NEVER


@native("i64(i64)", export=True)
def new_heap(_unused: int) -> int:
    return heap_new()


@native("void(i64)", export=True)
def drop_heap(heap: int) -> None:
    heap_drop(heap)


@native("i64(i64, i64, i64, i64)", export=True)
def push(heap: int, time: int, tie: int, value: int) -> int:
    return heap_push(heap, time, tie, value)


@native("void(i64)", export=True)
def pop(heap: int) -> None:
    heap_pop(heap)


@native("void(i64, i64, i64, i64)", export=True)
def replace(heap: int, time: int, tie: int, value: int) -> None:
    heap_replace(heap, time, tie, value)


@native("i64(i64, i64)", export=True)
def first_word(heap: int, word: int) -> int:
    return ld_i64(ld_i64(heap, HEAP_ITEMS), word)


@native("i64(i64)", export=True)
def next_time(heap: int) -> int:
    return ld_i64(heap, HEAP_NEXT)


FUNCTIONS = (
    heap_new, heap_drop, heap_push, heap_pop, heap_replace,
    new_heap, drop_heap, push, pop, replace, first_word, next_time,
)  # fmt: skip


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


@pytest.mark.parametrize("seed", range(4))
def test_the_first_is_the_least_by_time_then_tie(run, seed):
    rng = random.Random(seed)
    heap, held = run.new_heap(0), []
    assert run.next_time(heap) == NEVER
    for n in range(1500):
        item = (rng.randrange(20), n if rng.random() < 0.5 else -n, n)
        act = rng.random()
        if held and act < 0.3:
            held.remove(min(held))
            run.pop(heap)
        elif held and act < 0.5:
            held.remove(min(held))
            held.append(item)
            run.replace(heap, *item)
        else:
            held.append(item)
            assert run.push(heap, *item) == 1
        if held:
            assert tuple(run.first_word(heap, w) for w in range(3)) == min(held)
        assert run.next_time(heap) == (min(held)[0] if held else NEVER)
    run.drop_heap(heap)
