"""The command line: `cq COMMAND …`. Every command is a function in a file here, which is loaded when the command is
used.

Exit codes: 0 done; 1 the query or the data is at fault; 2 usage or an internal error; 130 interrupted.
"""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cq.cli.process import AT_FAULT, DONE, ENDING_SIGNALS, INTERRUPTED, USAGE, say
from cq.errors import CompileError, CqError, DataError, Diagnostic, UsageError, did_you_mean, internal_error, render

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("running", "Run a query."),
    "check": ("reading", "Check a query and report errors and warnings."),
    "explain": ("reading", "Show the plan of a query."),
    "diff": ("diffing", "Run a query on two engines and compare the results."),
    "fmt": ("reading", "Format query files."),
    "schema": ("reading", "Print the CREATE STREAM statement for a file."),
    "gen": ("generating", "Generate test data."),
    "warmup": ("warming", "Compile the runtime and queries ahead of time."),
    "functions": ("functions", "List the functions and aggregates."),
    "docs": ("functions", "Explain a function or aggregate."),
    "examples": ("examples", "List the queries that ship with cq, or run one in miniature."),
    "machine": ("machine", "Show the detected hardware."),
    "limits": ("machine", "List all limits."),
    "completion": ("completion", "Print the completion script of a shell."),
}


class Commands(click.Group):
    """The commands by name; only the one used is imported."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"cq.cli.{COMMANDS[name][0]}")
        command: click.Command = getattr(module, name)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not context.resilient_parsing:
            guess = did_you_mean(args[0], COMMANDS)
            if not guess and (args[0].endswith(".cq") or " " in args[0]):
                guess = "to run a query: cq run " + (args[0] if args[0].endswith(".cq") else "'SELECT …'")
            raise click.UsageError(f'there is no command "{args[0]}"' + (f"; {guess}" if guess else ""), context)
        return super().resolve_command(context, args)

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        own = [CompletionItem(name, help=doc) for name, (_, doc) in COMMANDS.items() if name.startswith(incomplete)]
        return own + click.Command.shell_complete(self, context, incomplete)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, doc) for name, (_, doc) in COMMANDS.items()])


@click.group(
    cls=Commands,
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.option("--version", is_flag=True, help="Show the version.")
@click.pass_context
def cli(context: click.Context, debug: bool, version: bool) -> int | None:
    """Run continuous SQL queries, on one machine or on Spark.

    \b
    cq run query.cq                     run a query file
    cq run query.cq txn=today.parquet   read stream txn from a file
    cq run "SELECT * FROM 'data.csv'"   run a query given as text
    cq < query.cq                       run a query from standard input
    cq                                  on a terminal: a shell
    """
    if version:
        from cq.version import VERSION

        click.echo(f"cq {VERSION}")
    elif context.invoked_subcommand is None:
        if sys.stdin.isatty() and sys.stdout.isatty():
            from cq.cli.shell import run_shell

            return run_shell()
        text = "" if sys.stdin.isatty() else sys.stdin.read()
        if text.strip():
            ended: int = cli.main(args=["run", "-c", text], prog_name="cq", standalone_mode=False)
            return ended
        click.echo(context.get_help())
    return None


def main(arguments: list[str] | None = None) -> None:
    """The `cq` command: run it and exit with its code."""
    # what starting creates lives to the end: looking through it for cycles 150 times took 41 ms of a run of 400
    gc.set_threshold(200_000, 50, 50)
    # nothing here multiplies matrices: the threads that numpy's BLAS starts on import only spin for a while
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _replace_closed_streams()
    _heed_signals()
    _leave(execute(sys.argv[1:] if arguments is None else arguments))


def _leave(code: int) -> NoReturn:
    """End the process at once: everything is written and exit functions have run; the interpreter is not torn down.

    A thread inside a library, or waiting for input that does not come, would return to a half-destroyed interpreter and
    abort the process. Tearing it down also costs a warm `cq run` 75 of 480 ms.
    """
    try:
        atexit._run_exitfuncs()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _heed_signals() -> None:
    """Let a signal that asks the process to end interrupt the command, which then removes its unfinished files."""
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _replace_closed_streams() -> None:
    """Replace a standard stream that was closed before the start with the null device; no file opened later is mistaken
    for it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it stays open


def execute(arguments: list[str]) -> int:
    """Run one command line and return its exit code; all errors have been reported on stderr."""
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    try:
        _demand_directory()
        result: Any = cli.main(args=arguments, prog_name="cq", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else DONE
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.ClickException as e:
        say(_usage_picture(e))
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        from cq.connectors.sinks.targets import silence_stdout

        silence_stdout()
        return DONE
    except CqError as e:
        if debug:
            _print_traceback()
        say(str(e))
        return exit_code(e)
    except Exception as e:
        if debug:
            _print_traceback()
        say(render(_full_disk(e) or internal_error(e)))
        return USAGE


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()


def _full_disk(error: Exception) -> Diagnostic | None:
    """The message if the output of a command finds no room; files have their own."""
    if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT):
        from cq.connectors.sinks.targets import cannot_write, silence_stdout

        silence_stdout()  # the rest of its buffer cannot be written either
        return cannot_write("<stdout>", error).first
    return None


def _demand_directory() -> None:
    """CQ0601 if the working directory has been removed: no path can be resolved from there."""
    try:
        os.getcwd()
    except OSError:
        help = ("change to an existing directory",)
        raise UsageError(Diagnostic("CQ0601", "the working directory has been removed", help=help)) from None


def exit_code(error: CqError) -> int:
    """1 when the query or the data is at fault; 2 for files, options and the installation, wherever they were found."""
    surroundings = all(d.code.startswith("CQ06") and d.code != "CQ0603" for d in error.diagnostics)
    return AT_FAULT if isinstance(error, CompileError | DataError) and not surroundings else USAGE


def _usage_picture(error: click.ClickException) -> str:
    help = ""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        help = f"{error.ctx.command_path} --help"
    message = error.format_message().rstrip(".")
    return render(Diagnostic("CQ0606", message[:1].lower() + message[1:], help=(help,) if help else ()))
