"""`cq functions` and `cq docs`: the functions of the language, from the registries, and forms that look like them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from cq.cli.entries import HelpEntry
from cq.cli.forms import FORMS
from cq.cli.operators import OPERATORS
from cq.cli.process import AT_FAULT, DONE, say
from cq.errors import Diagnostic, UsageError, did_you_mean, printable
from cq.grammar.signs import SIGN_HELP
from cq.grammar.unsupported import ELSEWHERE, FUNCTION_WAYS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

WIDTH = 100
LEAST_OF_DOC = 40  # characters of a description in the list, however many names come with it


@click.command()
@click.argument("word", required=False)
def functions(word: str | None) -> int:
    """List the functions and aggregates; with WORD, list those and the operators with WORD in name or description.

    Exits with 1 if there are none, like grep.
    """
    wanted = (word or "").lower()
    entries = all_entries() if word is None else [*all_entries(), *all_operators()]
    found = [e for e in entries if any(wanted in n for n in e.names) or wanted in e.doc.lower()]
    for entry in found:
        head = f"{entry.shape} (also {', '.join(entry.names[1:])})" if entry.names[1:] else entry.shape
        click.echo(f"{head}  {textwrap.shorten(entry.doc, max(WIDTH - len(head), LEAST_OF_DOC), placeholder=' …')}")
    if not found:
        say(f'no function has "{printable(wanted)}" in its name or description; {_meant(wanted) or FUNCTION_WAYS}')
    return DONE if found else AT_FAULT


def _meant(name: str) -> str:
    return ELSEWHERE.get(name) or did_you_mean(name, {n for e in (*all_entries(), *all_operators()) for n in e.names})


def _complete_functions(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    names = sorted(n for e in all_entries() for n in e.names if n.startswith(typed.lower()))
    return [CompletionItem(n) for n in names]


@click.command(context_settings={"ignore_unknown_options": True})  # ->> is not
@click.argument("function", shell_complete=_complete_functions)
def docs(function: str) -> int:
    """Explain FUNCTION, or an operator such as +: its syntax, meaning, examples and errors."""
    wanted = function.lower()
    found = [e for e in (*all_entries(), *all_operators()) if wanted in e.names]
    if not found:
        ways = (SIGN_HELP.get(wanted) or _meant(wanted), FUNCTION_WAYS)
        cause = f'there is no function "{printable(function)}"'
        raise UsageError(Diagnostic("CQ0205", cause, help=tuple(w for w in ways if w)))
    click.echo("\n\n".join(map(_explained, found)))
    return DONE


def all_entries() -> list[HelpEntry]:
    """Every function, aggregate and short form of the language, and everything that looks like one, by name."""
    from cq.lang import aggregates, functions
    from cq.planner.binding.functions.shorthands import SHORTHANDS

    found = []
    for every, aliases in (
        (functions.all_scalars(), functions.ALIASES),
        (aggregates.all_aggregates(), aggregates.ALIASES),
    ):
        for e in every.values():
            if e.name.isidentifier():  # an operator is not a name
                names = (e.name, *(alias for alias, meant in aliases.items() if meant == e.name))
                found.append(HelpEntry(names, e.shape, " ".join(e.doc.split()), tuple(e.examples), tuple(e.fails)))
    for form in dict.fromkeys(SHORTHANDS.values()):
        call, _, meaning = " ".join((form.__doc__ or "").split()).partition(": ")
        names = tuple(name for name, short in SHORTHANDS.items() if short is form)
        found.append(HelpEntry(names, call, meaning, (), ()))
    return sorted([*found, *FORMS], key=lambda e: e.names[0])


def all_operators() -> list[HelpEntry]:
    """Every sign or word that can be between values."""
    from cq.lang import functions

    signs = [e for e in functions.all_scalars().values() if not e.name.isidentifier()]
    spelled = {"<>": ("<>", "!="), "=": ("=", "==")}
    as_entries = [
        HelpEntry(spelled.get(e.name, (e.name,)), e.shape, e.doc, tuple(e.examples), tuple(e.fails)) for e in signs
    ]
    return [*as_entries, *OPERATORS]


def _explained(entry: HelpEntry) -> str:
    also = [f"also {', '.join(entry.names[1:])}"] if entry.names[1:] else []
    fails = [f"fails with {', '.join(entry.fails)}: see docs/language.md"] if entry.fails else []
    examples = [f"  {e}" for e in entry.examples]
    return "\n".join([entry.shape, *textwrap.wrap(entry.doc, WIDTH), *also, *examples, *fails])
