"""`@native`: a module-level Python function over the ops that can also be compiled.

The decorator only registers; the function is unchanged and runs interpreted when called. No numba here.
A native function may use: the ops, other native functions, `range`, module-level int and float constants, and plain
arithmetic on i64 and f64 locals. It cannot raise; an `assert` holds when interpreted and is absent when compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from cq.records import dataclass
from cq.runtime.base.signatures import NativeSignature

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Native:
    """One registered function. export: stages call it by symbol.  inline: stages get a copy of its code."""

    function: Callable[..., Any]
    signature: NativeSignature
    export: bool
    inline: bool

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def symbol(self) -> str:
        """Its name in object code; names visible to others are unique over all modules."""
        if self.export or self.inline:
            return f"cqrt_{self.name}"
        return f"cqrt_{self.function.__module__.rsplit('.', 1)[-1]}.{self.name}"


_REGISTERED: dict[Callable[..., Any], Native] = {}
_BY_MODULE: dict[str, list[Native]] = {}


def native(signature: str, *, export: bool = False, inline: bool = False) -> Callable[[F], F]:
    """Register a function under this signature.

    export: kernels and Python may call it; results and arguments are then i64 or f64, one result at most.
    inline: for small functions in the loops of stages; its code is copied into every caller.
    Neither: for other native functions of the runtime library only.
    """
    parsed = NativeSignature.parse(signature)
    assert not export or len(parsed.results) <= 1, "an exported function has one result"
    assert "bool" not in (*parsed.results, *parsed.arguments), "bool is written i64 here"

    def register(function: F) -> F:
        _REGISTERED[function] = entry = Native(function, parsed, export, inline)
        _BY_MODULE.setdefault(function.__module__, []).append(entry)
        return function

    return register


def registered(value: object) -> Native | None:
    """The registration of a function; None for anything else."""
    try:
        return _REGISTERED.get(value)  # type: ignore[call-overload,no-any-return]
    except TypeError:  # not hashable
        return None


def unfit(entry: object, roles: Mapping[str, int]) -> Iterator[str]:
    """Why functions of an entry cannot be called in their roles. roles: how many arguments each is called with."""
    for role, arguments in roles.items():
        found = registered(getattr(entry, role))
        if found is None or not found.export:
            yield f"{role} is no native function that is exported"
        elif len(found.signature.arguments) != arguments:
            yield f"{role} is called with {arguments} arguments and takes {len(found.signature.arguments)}"


def natives_of(module: str) -> list[Native]:
    """The native functions a module defines, in the order of their definition."""
    return list(_BY_MODULE.get(module, ()))
