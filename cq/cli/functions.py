"""`cq functions` and `cq docs`: the functions of the language, from the registries, and forms that look like them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from cq.cli import DONE
from cq.cli.entries import Entry
from cq.cli.forms import FORMS
from cq.errors import Diagnostic, UsageError, did_you_mean, printable
from cq.grammar.unsupported import ELSEWHERE, FUNCTION_WAYS
from cq.planner.binding.expressions import known_functions

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

WIDTH = 100


@click.command()
@click.argument("word", required=False)
def functions(word: str | None) -> int:
    """List the functions and aggregates; with WORD, those whose name or description has it."""
    wanted = (word or "").lower()
    for entry in all_entries():
        if any(wanted in n for n in entry.names) or wanted in entry.doc.lower():
            click.echo(textwrap.shorten(f"{entry.shape}  {entry.doc}", WIDTH, placeholder=" …"))
    return DONE


def _complete_functions(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    names = sorted(n for e in all_entries() for n in e.names if n.startswith(typed.lower()))
    return [CompletionItem(n) for n in names]


@click.command()
@click.argument("function", shell_complete=_complete_functions)
def docs(function: str) -> int:
    """Explain FUNCTION: how it is called, what it gives, examples, and the errors it fails with."""
    wanted = function.lower()
    found = [e for e in all_entries() if wanted in e.names]
    if not found:
        known = {*known_functions(), *(n for e in FORMS for n in e.names)}
        ways = (ELSEWHERE.get(wanted) or did_you_mean(wanted, known), FUNCTION_WAYS)
        cause = f'there is no function "{printable(function)}"'
        raise UsageError(Diagnostic("CQ0205", cause, help=tuple(w for w in ways if w)))
    click.echo("\n\n".join(map(_explained, found)))
    return DONE


def all_entries() -> list[Entry]:
    """Every function, aggregate and short form of the language, and what looks like one, by name."""
    from cq.lang import aggregates, functions
    from cq.planner.binding.shorthands import SHORTHANDS

    found = []
    for every, aliases in (
        (functions.all_scalars(), functions.ALIASES),
        (aggregates.all_aggregates(), aggregates.ALIASES),
    ):
        for e in every.values():
            if e.name.isidentifier():  # an operator is no name
                names = (e.name, *(alias for alias, meant in aliases.items() if meant == e.name))
                found.append(Entry(names, e.shape, " ".join(e.doc.split()), tuple(e.examples), tuple(e.fails)))
    for name, form in SHORTHANDS.items():
        call, _, meaning = " ".join((form.__doc__ or "").split()).partition(": ")
        found.append(Entry((name,), call, meaning, (), ()))
    return sorted([*found, *FORMS], key=lambda e: e.names[0])


def _explained(entry: Entry) -> str:
    also = [f"also {', '.join(entry.names[1:])}"] if entry.names[1:] else []
    fails = [f"fails with {', '.join(entry.fails)}: see docs/language.md"] if entry.fails else []
    examples = [f"  {e}" for e in entry.examples]
    return "\n".join([entry.shape, *textwrap.wrap(entry.doc, WIDTH), *also, *examples, *fails])
