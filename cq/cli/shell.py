"""The shell: `cq` alone on a terminal. Statements end with `;`, declarations stay, commands begin with a point."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import click

from cq.cli.entries import HelpEntry
from cq.cli.functions import all_entries
from cq.cli.process import DONE, say
from cq.cli.progress import summary_text
from cq.cli.prompt import BARE_WORDS, COMMAND_SIGNS, Cancelled, Offer, Prompt, interposed
from cq.cli.running import TerminalView, explain_statement, open_sinks, progress_shown, say_late
from cq.cli.signals import Ended, Interrupts, stopping
from cq.compiler.passes import EXPLAINED, Compiled, compile
from cq.connectors.access import FileAccess
from cq.connectors.inputs import Inputs
from cq.connectors.protocol import Sink
from cq.engines.engines import ENGINES, engine_named
from cq.engines.protocol import Progress, RunOptions
from cq.engines.query import run_reading_again
from cq.errors import CqError, Diagnostic, SourceText, Span, internal_error, printable, render
from cq.grammar import ast, inline
from cq.grammar.parser import parse, tables
from cq.grammar.printer import print_script
from cq.hints import SHELL, facing
from cq.planner.binding.parameters import Untyped
from cq.records import dataclass, field, replace

NAME = "<shell>"
WORDS_OF_THE_LANGUAGE = ("keyword", "function")  # which may be written in capitals
LEAVING = (".quit", ".exit", "\\q", "quit", "exit")
WELCOME = "cq: end a statement with ; · .help shows the commands · Ctrl-D leaves"
_QUOTED = re.compile(r"['\"]([^'\"]+)['\"]")
_CALL = re.compile(r"([a-z_0-9]+)\(")
KEPT = ast.CreateRelation | ast.CreateSink | ast.CreateView | ast.SetOption


@dataclass(slots=True)
class Shell:
    """declared: the statements that stay, by the name they declare."""

    declared: dict[str, str] = field(default_factory=dict)
    engine: str = next(iter(ENGINES))
    timer: bool = False
    expanded: bool = False
    parameters: dict[str, Untyped] = field(default_factory=dict)
    last: str = ""  # the statements run last, for .all
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by what is requested and declared
    interrupts: Interrupts = field(default_factory=Interrupts)

    def loop(self, read: Callable[[str], str]) -> int:
        """Read and run until the input ends. Raises Ended if a signal ends the process.

        read: takes the text with which a statement already starts, and returns what was typed.
        """
        with self.interrupts:
            say(WELCOME)
            return self.goes_on(read)

    def goes_on(self, read: Callable[[str], str]) -> int:
        """The same, in which Ctrl-C does not end the shell."""
        begun = ""
        while True:
            try:
                typed = read(begun)
            except Ended:
                raise
            except (Cancelled, KeyboardInterrupt):  # the latter while the prompt releases the keyboard
                begun = ""
                continue
            except EOFError:
                return DONE
            inside = interposed(typed)
            begun, line = inside or ("", typed.strip())
            begun += "\n" if begun else ""
            word = line.rstrip("; ").lower()
            if word in LEAVING and (word not in BARE_WORDS or not begun):
                return DONE
            if word in BARE_WORDS:
                self.told(word, begun)
                begun += f"{line}\n" if begun else ""
            elif line.startswith(COMMAND_SIGNS):
                self.guarded(self.command, line)
            elif line:
                self.guarded(self.run, typed)

    def told(self, word: str, begun: str) -> None:
        """`help` shows the commands; inside a statement such a word may be a name, and the fix is shown."""
        if begun:
            say(f"{word} is part of the statement: use .quit to leave, .help for help, Ctrl-C to drop it")
        else:
            self.help("")

    def guarded(self, work: Callable[[str], None], text: str) -> None:
        """Run it; report errors, and let the shell go on."""
        try:
            with self.interrupts.work():
                work(text)
        except CqError as error:
            say("\n".join(render(_in_own_text(d, text)) for d in error.diagnostics))
        except Ended:
            raise
        except KeyboardInterrupt:
            say("interrupted")
        except Exception as error:  # a bug of ours must not cost the declarations
            say(render(internal_error(error)))

    def compiled(self, text: str) -> Compiled:
        """The text among the declarations: they come on one line before it, and after it from the first name that it
        redeclares, since later ones may read that."""
        new = {_key(s) for s in parse(SourceText(NAME, text)).statements if isinstance(s, KEPT)}
        at = next((i for i, name in enumerate(self.declared) if name in new), len(self.declared))
        kept = [(i < at, d) for i, (name, d) in enumerate(self.declared.items()) if name not in new]
        before, after = (" ".join(d for is_before, d in kept if is_before is side) for side in (True, False))
        return compile(f"{before}\n{text}\n{after}", NAME, self.parameters, Inputs(FileAccess(Path.cwd())))

    def run(self, text: str) -> None:
        """Run the statements of a text, and keep its declarations."""
        compiled = self.compiled(text)
        self.last = text
        for warning in compiled.warnings:
            if 1 < warning.span.line <= 2 + text.count("\n"):
                say(render(_in_own_text(warning, text)))
        for explained in compiled.bound.explains:
            click.echo(explain_statement(compiled, explained, None))
        if compiled.outputs:
            self.show(compiled, TerminalView(expanded=self.expanded))
        for statement in parse(SourceText(NAME, text)).statements:
            if isinstance(statement, KEPT):
                self.declared[_key(statement)] = print_script(ast.Script((statement,))).replace("\n", " ").strip()

    def show(self, compiled: Compiled, shown: TerminalView) -> None:
        """Run the outputs onto the screen, or to their sinks."""
        progress = Progress()
        options = RunOptions(unhashed=frozenset(o.name for o in compiled.outputs))
        with shown.screen(compiled) as screen, stopping(progress), progress_shown(progress, screen, quiet=False):

            def opened(compiled: Compiled) -> Mapping[str, Sink]:
                return open_sinks(compiled, (), "table", screen, shown.rows(screen))

            done = run_reading_again(compiled, opened, self.engine, options, progress)
        if self.timer or done.late_rows or done.rejected_events or any(done.bad_rows.values()) or done.interrupted:
            say(summary_text(done))
        say_late(done, compiled)

    # ------------------------------------------------------------------------------------------------------ commands

    def command(self, line: str) -> None:
        name, _, rest = line.rstrip("; ").partition(" ")
        work = COMMANDS.get(name)
        if work is None:
            say(f"there is no command {name}; .help lists the commands")
            return
        work[0](self, rest.strip())

    def help(self, _: str) -> None:
        """show this"""
        for name, (work, arguments) in COMMANDS.items():
            click.echo(f"{f'{name} {arguments}'.strip():18} {work.__doc__}")
        click.echo(f"{'.quit':18} leave, as Ctrl-D does")

    def tables(self, _: str) -> None:
        """list what is declared"""
        for name in self.declared:
            click.echo(name)

    def schema(self, named: str) -> None:
        """show the declarations, that of a name, or the CREATE STREAM of a file"""
        of_name = self.declared.get(named.strip('"')) or self.declared.get(named.lower())
        if not named or of_name:
            for text in [of_name] if of_name else self.declared.values():
                click.echo(print_script(parse(SourceText(NAME, text))).rstrip("\n"))
            return
        from cq.cli.reading import schema

        quote = named[0] if len(named) > 1 and named[0] == named[-1] and named[0] in "'\"" else ""
        schema.main([named.removeprefix(quote).removesuffix(quote)], prog_name=".schema", standalone_mode=False)

    def explain(self, text: str) -> None:
        """show the plan of a query"""
        compiled = self.compiled(text + ";")
        click.echo(compiled.for_workers(compiled.workers()).explain(EXPLAINED).rstrip("\n"))

    def all(self, _: str) -> None:
        """show all rows and columns of the last query"""
        if not self.last:
            say("no query was run yet")
            return
        self.show(self.compiled(self.last), TerminalView(wide=True, expanded=self.expanded, every_row=True))

    def set_expanded(self, _: str) -> None:
        """show each row as lines of column and value, or no longer"""
        self.expanded = not self.expanded
        click.echo(f"expanded view {'on' if self.expanded else 'off'}")

    def offers(self, text: str, typed: str) -> Iterator[Offer]:
        """Completions of a word at the prompt: a command where a line may start with one, else a word of the language,
        a declared name, or a column of it or of a file that the text names."""
        if text.lstrip().startswith(COMMAND_SIGNS) and text.split(maxsplit=1)[0] == typed:
            yield from (Offer(c, "command") for c in (*COMMANDS, ".quit") if c.startswith(typed))
            return
        relation, point, start = typed.rpartition(".")
        names = [name for name in self.declared if not name.startswith("SET ")]
        files = [path for path in _QUOTED.findall(text) if Path(path).is_file()]
        sources = [(inline.name(n), n) for n in names] + [(inline.string(path), path) for path in files]
        known = [Offer(c, f"column of {shown}") for sql, shown in sources for c in self.columns_of(sql)]
        if point:
            own = [o for o in known if relation not in names or o.kind == f"column of {relation}"]
            yield from (Offer(f"{relation}.{o.word}", o.kind) for o in own if o.word.startswith(start.lower()))
            return
        known += [Offer(name, "declared") for name in names]
        known += [Offer(name, "function") for entry in all_entries() if _called(entry) for name in entry.names]
        known += [Offer(word.lower(), "keyword") for word in tables().keywords if word.isalpha()]
        for offer in known:
            if offer.word.lower().startswith(typed.lower()):
                in_capitals = typed.isupper() and offer.kind in WORDS_OF_THE_LANGUAGE
                yield Offer(offer.word.upper(), offer.kind) if in_capitals else offer

    def columns_of(self, relation: str) -> tuple[str, ...]:
        """The columns of a stream, view or file as a query writes them; none for what cannot be read now."""
        text = " ".join((relation, *self.declared.values()))
        if text not in self.columns:
            found: tuple[str, ...] = ()
            with suppress(CqError):
                fields = self.compiled(f"SELECT * FROM {relation};").outputs[0].node.schema.fields
                found = tuple(inline.name(f.name) for f in fields)
            self.columns[text] = found
        return self.columns[text]

    def set_parameter(self, given: str) -> None:
        """set the parameter :NAME; without VALUE remove it, without NAME list all"""
        name, _, value = given.partition(" ")
        name = name.removeprefix(":").lower()
        if not name:
            for known, text in self.parameters.items():
                click.echo(f"{known} {printable(text)}")
        elif not value.strip():
            self.parameters.pop(name, None)
        else:
            self.parameters[name] = Untyped(value.strip())

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
    ".schema": (Shell.schema, "[NAME|FILE]"),
    ".explain": (Shell.explain, "QUERY"),
    ".all": (Shell.all, ""),
    "\\x": (Shell.set_expanded, ""),
    ".set": (Shell.set_parameter, "[NAME [VALUE]]"),
    ".timer": (Shell.set_timer, ""),
    ".engine": (Shell.set_engine, "NAME"),
}


def run_shell() -> int:
    """The shell at a prompt with completion."""
    shell = Shell()
    with facing(SHELL):
        return shell.loop(Prompt(shell.offers).read)


def _called(entry: HelpEntry) -> bool:
    """Whether queries call it by its names: date_trunc_day is written `date_trunc('day', …)`."""
    shown = _CALL.match(entry.shape)
    return shown is None or shown[1] in entry.names


def _key(statement: ast.CreateRelation | ast.CreateSink | ast.CreateView | ast.SetOption) -> str:
    return f"SET {statement.name}" if isinstance(statement, ast.SetOption) else statement.name


def _in_own_text(d: Diagnostic, text: str) -> Diagnostic:
    """A finding moved from the text among declarations to the text alone, which starts on the second line."""
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
