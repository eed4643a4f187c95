"""The type of a native function, written `i64(i64, f64)`; several results are written `(i64, f64)(i64)`."""

from __future__ import annotations

import re
from functools import cache

from cq.records import dataclass

KINDS = frozenset({"i64", "f64", "bool", "void"})
_FORM = re.compile(r"\s*(\w+|\([^()]*\))\s*\(([^()]*)\)\s*")


@dataclass(frozen=True, slots=True)
class NativeSignature:
    """Argument kinds and result kinds; no result kind means void. `bool` is for ops only."""

    results: tuple[str, ...]
    arguments: tuple[str, ...]

    @property
    def result(self) -> str:
        """The one result kind, or `void`."""
        assert len(self.results) <= 1, "several results"
        return self.results[0] if self.results else "void"

    @staticmethod
    @cache
    def parse(text: str) -> NativeSignature:
        """Parse the text of a signature; an assertion fails if it is invalid."""
        match = _FORM.fullmatch(text)
        assert match, f"no signature: {text!r}"
        results = _kinds(match[1].strip("()"))
        arguments = _kinds(match[2])
        assert "void" not in arguments, f"no signature: {text!r}"
        return NativeSignature(() if results == ("void",) else results, arguments)

    def __str__(self) -> str:
        made = (
            "void"
            if not self.results
            else self.results[0]
            if len(self.results) == 1
            else f"({', '.join(self.results)})"
        )
        return f"{made}({', '.join(self.arguments)})"


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(part.strip() for part in text.split(",") if part.strip())
    assert KINDS.issuperset(kinds), f"unknown kind in {text!r}"
    return kinds
