"""The prompt of the shell: edits a statement over several lines, with history and completion."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completion
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings

from cq.grammar.parser import ends_a_statement
from cq.records import dataclass

PROMPT, MORE = "cq> ", "..> "
HISTORY = Path("~/.cq_history")
KEPT_ENTRIES = 10_000  # of the history: years of a person's work, and 10 ms to read
MENU_LINES = 6  # kept free below the prompt for the completion menu
COMMAND_SIGNS = (".", "\\")
BARE_WORDS = ("exit", "quit", "help")  # what people type before they know how commands are written here
_COMMAND = re.compile(r"(\.[a-z]+|\\[a-z?])( .*)?;?", re.IGNORECASE)
_WORD = re.compile(r"[\w.\\]*$")
_ENTRY = re.compile(rb"^\n# ", re.MULTILINE)  # how prompt_toolkit starts one: its lines begin with +


@dataclass(frozen=True, slots=True)
class Offer:
    """A word that completion knows. kind: its description in the menu."""

    word: str
    kind: str


Offers = Callable[[str, str], Iterator[Offer]]
"""(the text at the prompt, the beginning of the word) → its possible completions."""


class Cancelled(Exception):
    """Ctrl-C was typed at the prompt: its text is discarded."""


def finished(text: str) -> bool:
    """Whether Enter runs the text: a command of the shell, or something that ends like a statement."""
    typed = text.strip()
    return not typed or typed.startswith(COMMAND_SIGNS) or _is_bare(typed) or ends_a_statement(text)


def _is_bare(line: str) -> bool:
    return line.rstrip("; ").lower() in BARE_WORDS


def interposed(text: str) -> tuple[str, str] | None:
    """(the lines before, the last line) if the last one is for the shell, inside an unfinished statement.

    A line that starts like a command, or is just a word for leaving or for help, unless a quote is open.
    """
    before, _, last = text.rpartition("\n")
    line = last.strip()
    for_shell = _COMMAND.fullmatch(line) is not None or _is_bare(line)
    return (before, line) if before.strip() and for_shell and _open_quote(before) is None else None


class Prompt:
    """Reads one statement, or one command, at a time."""

    def __init__(self, offers: Offers) -> None:
        completer = Completer(offers)
        self._session = PromptSession(
            history=_history(),
            completer=completer,
            complete_while_typing=False,
            key_bindings=_keys(completer),
            interrupt_exception=Cancelled,
            multiline=Condition(lambda: not finished(get_app().current_buffer.text)),
            prompt_continuation=MORE,
            reserve_space_for_menu=MENU_LINES,
        )

    def read(self, begun: str = "") -> str:
        """The text typed, after the text already started.

        EOFError after Ctrl-D; Cancelled after Ctrl-C, and after Ctrl-D in an unfinished statement.
        """
        typed: str = self._session.prompt(PROMPT, default=begun)
        return typed


def _history() -> Any:
    """The history of earlier shells; if the home directory is not writable, only that of this one."""
    path = HISTORY.expanduser()
    writable = os.access(path if path.exists() else path.parent, os.W_OK)
    if not writable:
        return InMemoryHistory()
    with suppress(OSError):  # then it keeps its length
        shorten(path)
    return FileHistory(str(path))


def shorten(path: Path, kept: int = KEPT_ENTRIES) -> None:
    """Cut a history file with a tenth more entries than are kept to the last of them; the file is complete at every
    moment."""
    if not path.exists():
        return
    text = path.read_bytes()
    starts = [m.start() for m in _ENTRY.finditer(text)]
    if len(starts) <= kept + kept // 10:
        return
    real = Path(os.path.realpath(path))
    part = real.with_name(f"{real.name}.{os.getpid()}.part")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(text[starts[-kept] :])
        part.chmod(real.stat().st_mode & 0o777)
        part.replace(real)
    finally:
        part.unlink(missing_ok=True)


def _keys(completer: Completer) -> Any:
    """Make Tab complete before the next key is read, so that text typed ahead follows the completed word."""

    def complete(event: Any) -> None:
        buffer = event.current_buffer
        if buffer.complete_state:
            buffer.complete_next()
            return
        typed, offers = completer.offered(buffer.text, buffer.document.text_before_cursor)
        if not offers:
            return
        common = _common_start(offers[0].word, offers[-1].word)
        if len(common) > len(typed) or len(offers) == 1:
            buffer.delete_before_cursor(len(typed))
            buffer.insert_text(common)
        else:
            buffer.start_completion()

    def interpose(event: Any) -> None:
        event.app.exit(result=event.app.current_buffer.text)  # past the history, which holds statements

    def cancel(event: Any) -> None:
        event.app.exit(exception=Cancelled)

    keys = KeyBindings()
    keys.add("tab")(complete)
    keys.add("enter", filter=Condition(lambda: interposed(get_app().current_buffer.text) is not None))(interpose)
    keys.add("c-d", filter=Condition(lambda: _at_the_end(get_app().current_buffer)))(cancel)
    return keys


def _at_the_end(buffer: Any) -> bool:
    """Whether the cursor is after all text: there is nothing that Ctrl-D could delete."""
    return bool(buffer.text) and buffer.cursor_position == len(buffer.text)


def _common_start(first: str, last: str) -> str:
    """The common prefix of a sorted list of words, from its first and its last."""
    shorter = min(len(first), len(last))
    return first[: next((n for n in range(shorter) if first[n] != last[n]), shorter)]


class Completer:
    """Completion for prompt_toolkit: files after an open quote, else words."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers

    def get_completions(self, document: Any, _: object) -> Iterator[Any]:
        """The completions of the word before the cursor, by name."""
        typed, offers = self.offered(document.text, document.text_before_cursor)
        for offer in offers:
            yield Completion(offer.word, -len(typed), display_meta=offer.kind)

    async def get_completions_async(self, document: Any, event: object) -> AsyncIterator[Any]:
        """The same, for the menu of several words."""
        for completion in self.get_completions(document, event):
            yield completion

    def offered(self, text: str, before: str) -> tuple[str, list[Offer]]:
        """The start of a word, and its possible completions."""
        quote = _open_quote(before)
        typed = before[quote + 1 :] if quote is not None else before[_word_start(before) :]
        found = _files(typed) if quote is not None else self._offers(text, typed)
        return typed, sorted({o.word: o for o in found}.values(), key=lambda o: o.word)


def _word_start(before: str) -> int:
    found = _WORD.search(before)
    assert found is not None, "the pattern matches nothing at all, too"
    return found.start()


def _open_quote(before: str) -> int | None:
    """The position of the quote in which the cursor is, if it is inside quotes."""
    opened = None
    for at, sign in enumerate(before):
        if opened is None and sign in "'\"":
            opened = at
        elif opened is not None and sign == before[opened]:
            opened = None
    return opened


def _files(typed: str) -> Iterator[Offer]:
    directory, slash, start = typed.rpartition("/")
    with suppress(OSError):
        for entry in os.scandir(directory + slash or "."):
            if entry.name.startswith(start) and (start or not entry.name.startswith(".")):
                path = directory + slash + entry.name
                yield Offer(path + "/", "directory") if entry.is_dir() else Offer(path, "file")
