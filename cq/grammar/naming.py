"""What a text names but does not provide: inputs, parameters, functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cq.grammar import ast
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class UsedNames:
    """streams: those read without a source in the text.  parameters: from `:name`.  calls: the first of each name."""

    streams: frozenset[str]
    parameters: frozenset[str]
    calls: dict[str, ast.Call]


def names_of(script: ast.Script) -> UsedNames:
    """The names that whoever runs these statements must provide."""
    declared = {s.name for s in script.statements if isinstance(s, ast.CreateRelation | ast.CreateView)}
    known = {c.name for n in ast.walk(script) if isinstance(n, ast.Query) for c in n.ctes} | declared
    read, parameters = set[str](), set[str]()
    calls: dict[str, ast.Call] = {}
    for node in ast.walk(script):
        match node:
            case ast.TableRef(name=str(name), is_path=False) | ast.TableArgument(source=str(name), is_path=False):
                read.add(name)
            case ast.Parameter(name=name):
                parameters.add(name)
            case ast.Call(name=name):
                calls.setdefault(name, node)
    return UsedNames(frozenset(read - known | read & _without_source(script)), frozenset(parameters), calls)


def as_written(given: Iterable[str], script: ast.Script) -> dict[str, str]:
    """Of each name of an input, the one these statements have for it.

    A text writes Frame without quotes, which is frame: that is the only input whose name differs in letter case, where
    none has exactly this name.
    """
    declared = {s.name for s in script.statements if isinstance(s, ast.CreateRelation)}
    written, given = names_of(script).streams | declared, list(given)
    alike = Counter(name.lower() for name in given)
    meant = (n.lower() if n not in written and n.lower() in written and alike[n.lower()] == 1 else n for n in given)
    return dict(zip(given, meant, strict=True))


def _without_source(script: ast.Script) -> set[str]:
    """The streams that are declared, and read from inputs provided for the run."""
    declared = (s for s in script.statements if isinstance(s, ast.CreateRelation) and s.kind != "TABLE")
    return {s.name for s in declared if not any(_names_source(o) for o in s.options)}


def _names_source(option: ast.Option) -> bool:
    """Whether the option says where rows come from; the connector `memory` leaves that to the caller."""
    in_memory = isinstance(option.value, ast.StringLiteral) and option.value.value.lower() == "memory"
    return option.key == "path" or (option.key == "connector" and not in_memory)
