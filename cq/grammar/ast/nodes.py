"""What all nodes share: they are frozen, compared by content, and walked without recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast, dataclass_transform

from cq.errors import NOWHERE, Span
from cq.records import dataclass, field, fields, replace

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(kind: type[T]) -> type[T]:
    """A frozen dataclass with slots that compares, hashes and shows itself by the methods of Node."""
    return dataclass(frozen=True, slots=True, eq=False, repr=False)(kind)


@node
class Node:
    """Base of all nodes. Two nodes are equal when they have the same content, wherever they are."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        pending: list[tuple[object, object]] = [(self, other)]
        while pending:  # a loop: the generated comparison needs four C frames a level and fails on deep trees
            a, b = pending.pop()
            if isinstance(a, Node):
                if type(a) is not type(b):
                    return False
                pending.extend((getattr(a, name), getattr(b, name)) for name in said_fields(type(a)))
            elif isinstance(a, tuple) and isinstance(b, tuple):
                if len(a) != len(b):
                    return False
                pending.extend(zip(a, b, strict=True))
            elif a != b:
                return False
        return True

    def __hash__(self) -> int:
        return hash((type(self).__name__, *(getattr(self, name) for name in said_fields(type(self)))))

    def __repr__(self) -> str:
        """The node without places and without absent fields."""
        said = ((name, getattr(self, name)) for name in said_fields(type(self)))
        shown = (
            f"{name}={value!r}" for name, value in said if value is not None and value != () and value is not False
        )
        return f"{type(self).__name__}({', '.join(shown)})"


_SAID_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def said_fields(kind: type[Node]) -> tuple[str, ...]:
    """The fields that make up a node's content: all except places and comments."""
    known = _SAID_FIELDS.get(kind)
    if known is None:
        known = _SAID_FIELDS[kind] = tuple(f.name for f in fields(kind) if f.compare)
    return known


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below `node`, in the order of its fields."""
    for name in said_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, parents before children, left to right."""
    pending = [node]
    while pending:
        top = pending.pop()
        yield top
        pending.extend(reversed(list(children(top))))


def rewritten(value: T, change: Callable[[Node], Node | None]) -> T:
    """A copy of a node, or of a tuple with nodes, in which each node that `change` gives another for is that other.

    It is not asked about what is inside one that it gives: by giving the node itself it leaves that as it is.
    """
    if isinstance(value, tuple):
        return cast(T, tuple(rewritten(v, change) for v in value))
    if not isinstance(value, Node):
        return value
    other = change(value)
    if other is not None:
        return cast(T, other)
    said: dict[str, Any] = {name: rewritten(getattr(value, name), change) for name in said_fields(type(value))}
    return replace(value, **said)
