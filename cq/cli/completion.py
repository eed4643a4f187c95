"""`cq completion`: the script with which a shell completes commands, options, their values and files.

Completions of a word's values are declared with the word (`shell_complete=`); only files need help from here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from cq.cli.process import DONE
from cq.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_CQ_COMPLETE"  # through which the script asks `cq` for completions; click's own name for it


def complete_files(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the path of a file, also after `STREAM=`."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(typed.rpartition("=")[2], type="file")]


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.pass_context
def completion(context: click.Context, shell: str | None) -> int:
    """Print the completion script of SHELL. Default: your login shell.

    \b
    eval "$(cq completion bash)"    in ~/.bashrc
    eval "$(cq completion zsh)"     in ~/.zshrc, after compinit
    cq completion fish | source     in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in SHELLS:
        ways = tuple(f"cq completion {s}" for s in SHELLS)
        raise UsageError(Diagnostic("CQ0606", "cannot tell which shell you use", help=ways))
    kind = get_completion_class(name)
    assert kind is not None, "a shell that click does not know"
    script = kind(context.find_root().command, {}, "cq", VARIABLE)
    click.echo(script.source_template % script.source_vars())
    return DONE
