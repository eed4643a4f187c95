"""The shell: `cq` alone on a terminal. Statements end with `;`, what is declared stays, commands begin with a point."""

from __future__ import annotations

import os
import readline
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click

from cq.cli import DONE, internal_error, say
from cq.cli.progress import summary_text
from cq.cli.running import explain_statement, open_sinks, progress_shown, stopping
from cq.compiler.passes import Compiled, compile
from cq.connectors.access import Access
from cq.connectors.inputs import Inputs
from cq.connectors.sinks.terminal import FIRST_ROWS, Screen
from cq.engines.engines import ENGINES, engine_named
from cq.engines.protocol import Progress, RunOptions
from cq.engines.query import run_query
from cq.errors import CqError, Diagnostic, SourceText, Span, render
from cq.grammar import ast, inline
from cq.grammar.parser import parse, tables
from cq.grammar.printer import print_script
from cq.records import dataclass, field, replace

PROMPT, MORE = "cq> ", "..> "
NAME = "<shell>"
HISTORY = Path("~/.cq_history")
HISTORY_LINES = 10_000
WELCOME = "cq: end a statement with ; · .help shows the commands · Ctrl-D leaves"
KEPT = ast.CreateRelation | ast.CreateSink | ast.CreateView | ast.SetOption


@dataclass(slots=True)
class Shell:
    """declared: the statements that stay, by what they name."""

    declared: dict[str, str] = field(default_factory=dict)
    engine: str = next(iter(ENGINES))
    timer: bool = False
    expanded: bool = False
    last: str = ""  # the statements that were run last, for .all
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of what is declared, by its text

    def loop(self) -> int:
        """Read and run until the input ends."""
        say(WELCOME)
        waiting = ""
        while True:
            try:
                line = input(MORE if waiting else PROMPT)
            except KeyboardInterrupt:
                waiting = ""
                click.echo()
                continue
            except EOFError:
                click.echo()
                return DONE
            if not waiting and line.strip().startswith((".", "\\")):
                if line.split()[0] in {".quit", ".exit"}:
                    return DONE
                self.guarded(self.command, line)
                continue
            waiting = f"{waiting}\n{line}" if waiting else line
            if not waiting.strip():
                waiting = ""
            elif waiting.rstrip().endswith(";"):
                self.guarded(self.run, waiting)
                waiting = ""

    def guarded(self, work: Callable[[str], None], text: str) -> None:
        """Do it; what goes wrong is said, and the shell goes on."""
        try:
            work(text)
        except CqError as error:
            say("\n".join(render(_in_own_text(d, text)) for d in error.diagnostics))
        except KeyboardInterrupt:
            say("interrupted")
        except Exception as error:  # a mistake of ours must not cost what was declared
            say(render(internal_error(error)))

    def compiled(self, text: str) -> Compiled:
        """The text among what is declared: on one line before it, and behind it from the first name that it declares
        anew, since what follows may read that."""
        new = {_key(s) for s in parse(SourceText(NAME, text)).statements if isinstance(s, KEPT)}
        at = next((i for i, name in enumerate(self.declared) if name in new), len(self.declared))
        kept = [(i < at, d) for i, (name, d) in enumerate(self.declared.items()) if name not in new]
        before, after = (" ".join(d for is_before, d in kept if is_before is side) for side in (True, False))
        return compile(f"{before}\n{text}\n{after}", NAME, inputs=Inputs(Access(Path.cwd())))

    def run(self, text: str) -> None:
        """Run the statements of a text, and keep what they declare."""
        compiled = self.compiled(text)
        self.last = text
        for warning in compiled.warnings:
            if 1 < warning.span.line <= 2 + text.count("\n"):
                say(render(_in_own_text(warning, text)))
        for explained in compiled.bound.explains:
            click.echo(explain_statement(compiled, explained, None))
        if compiled.outputs:
            self.show(compiled)
        for statement in parse(SourceText(NAME, text)).statements:
            if isinstance(statement, KEPT):
                self.declared[_key(statement)] = print_script(ast.Script((statement,))).replace("\n", " ").strip()

    def show(self, compiled: Compiled, screen: Screen | None = None) -> None:
        """Run the outputs onto a screen that takes all rows, else the first of them onto ours, or to their sinks."""
        progress = Progress()
        paged, rows = screen is not None, FIRST_ROWS if screen is None else None
        screen = screen or Screen.stdout(len(compiled.outputs) > 1, expanded=self.expanded)
        sinks = open_sinks(compiled, (), "table", screen, rows, "; .all shows them")
        options = RunOptions(unhashed=frozenset(sinks))
        with stopping(progress), progress_shown(progress, screen, quiet=paged):
            done = run_query(compiled, sinks, self.engine, options, progress)
        if self.timer or done.late_rows or any(done.bad_rows.values()) or done.interrupted:
            say(summary_text(done))

    # ------------------------------------------------------------------------------------------------------ commands

    def command(self, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        work = COMMANDS.get(name)
        if work is None:
            say(f"there is no command {name}; .help shows those there are")
            return
        work[0](self, rest.strip().rstrip(";"))

    def help(self, _: str) -> None:
        """show this"""
        for name, (work, arguments) in COMMANDS.items():
            click.echo(f"{f'{name} {arguments}'.strip():18} {work.__doc__}")
        click.echo(f"{'.quit':18} leave, as Ctrl-D does")

    def tables(self, _: str) -> None:
        """list what is declared"""
        for name in self.declared:
            click.echo(name)

    def schema(self, file: str) -> None:
        """show the declarations, or the CREATE STREAM of a file"""
        if not file:
            for text in self.declared.values():
                click.echo(print_script(parse(SourceText(NAME, text))).rstrip("\n"))
            return
        from cq.cli.reading import schema

        schema.main([file], prog_name=".schema", standalone_mode=False)

    def explain(self, text: str) -> None:
        """show the plan of a query"""
        compiled = self.compiled(text + ";")
        click.echo(compiled.for_workers(compiled.workers()).explain("logical").rstrip("\n"))

    def all(self, _: str) -> None:
        """show all rows and columns of the last query in a pager"""
        if not self.last:
            say("no query was run yet")
            return
        compiled = self.compiled(self.last)
        pager = os.environ.get("PAGER") or "less -SRFX"
        with subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, text=True, encoding="utf-8") as shown:
            assert shown.stdin is not None
            with suppress(BrokenPipeError):  # somebody has seen enough
                colour = Screen.stdout(titles=False).colour
                self.show(compiled, Screen(shown.stdin, colour, len(compiled.outputs) > 1, expanded=self.expanded))
                shown.stdin.close()

    def set_expanded(self, _: str) -> None:
        """show each row as lines of column and value, or no longer"""
        self.expanded = not self.expanded
        click.echo(f"expanded view {'on' if self.expanded else 'off'}")

    def columns_of(self, name: str) -> tuple[str, ...]:
        """The columns of a stream or view that was declared; none of what cannot be read now."""
        text = self.declared[name]
        if text not in self.columns:
            found: tuple[str, ...] = ()
            with suppress(CqError):
                found = tuple(
                    f.name for f in self.compiled(f"SELECT * FROM {inline.name(name)};").outputs[0].node.schema.fields
                )
            self.columns[text] = found
        return self.columns[text]

    def set_timer(self, _: str) -> None:
        """show rows and time after each query, or no longer"""
        self.timer = not self.timer
        click.echo(f"timer {'on' if self.timer else 'off'}")

    def set_engine(self, name: str) -> None:
        """run queries on native, reference or spark"""
        engine_named(name)
        self.engine = name


COMMANDS: dict[str, tuple[Callable[[Shell, str], None], str]] = {
    ".help": (Shell.help, ""),
    ".tables": (Shell.tables, ""),
    ".schema": (Shell.schema, "[FILE]"),
    ".explain": (Shell.explain, "QUERY"),
    ".all": (Shell.all, ""),
    "\\x": (Shell.set_expanded, ""),
    ".timer": (Shell.set_timer, ""),
    ".engine": (Shell.set_engine, "NAME"),
}


def run_shell() -> int:
    """The shell with its history and completion."""
    shell, history = Shell(), HISTORY.expanduser()
    with suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(HISTORY_LINES)
    readline.set_completer_delims(" \t\n(),;='\"")
    readline.set_completer(Completer(shell))
    readline.parse_and_bind("tab: complete")
    try:
        return shell.loop()
    finally:
        with suppress(OSError):
            readline.write_history_file(history)


class Completer:
    """Names that go on from what was typed: keywords, functions, what is declared, commands, files behind a quote."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._found: list[str] = []

    def __call__(self, typed: str, state: int) -> str | None:
        if state == 0:
            before = readline.get_line_buffer()[: readline.get_begidx()]
            words = _files(typed) if before.endswith(("'", '"')) else self._words(typed)
            self._found = sorted(set(words))
        return self._found[state] if state < len(self._found) else None

    def _words(self, typed: str) -> Iterator[str]:
        from cq.planner.binding.expressions import known_functions

        upper = typed.isupper()
        shell = self._shell
        columns = (c for name in list(shell.declared) if not name.startswith("SET ") for c in shell.columns_of(name))
        for word in (*COMMANDS, *shell.declared, *columns, *known_functions(), *map(str.lower, tables().keywords)):
            if word.startswith(typed.lower()):
                yield word.upper() if upper else word


def _files(typed: str) -> Iterator[str]:
    directory, _, start = typed.rpartition("/")
    with suppress(OSError):
        for entry in os.scandir(directory or "."):
            if entry.name.startswith(start) and (start or not entry.name.startswith(".")):
                path = f"{directory}/{entry.name}" if directory or typed.startswith("/") else entry.name
                yield path + ("/" if entry.is_dir() else "")


def _key(statement: ast.CreateRelation | ast.CreateSink | ast.CreateView | ast.SetOption) -> str:
    return f"SET {statement.name}" if isinstance(statement, ast.SetOption) else statement.name


def _in_own_text(d: Diagnostic, text: str) -> Diagnostic:
    """A finding in the text among declarations, in the text alone: it begins on the second line."""
    if (
        d.source is None
        or d.source.name != NAME
        or d.source.text == text
        or not 1 < d.span.line <= 2 + text.count("\n")
    ):
        return d
    labels = tuple(replace(x, span=_up(x.span)) for x in d.labels if x.span.line > 1)
    return replace(d, source=SourceText(NAME, text), span=_up(d.span), labels=labels)


def _up(span: Span) -> Span:
    return replace(span, line=span.line - 1, end_line=span.end_line - 1)
