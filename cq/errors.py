"""Every error a user can see: a stable code, a place, a cause in words, and a way out.

`Diagnostic` is the value; `CqError` and its subclasses carry one or more of them; `render` draws the picture.
Codes are registered once, in `CODES`; docs/language.md prints that table.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, Final, Literal, TypeVar

from cq.records import dataclass, field, replace

MAX_MISTAKES = 20  # of one expression or list: each part of a condition with 10,000 may have the same mistake
S = TypeVar("S")
T = TypeVar("T")

CODES: dict[str, str] = {
    # 01xx: text
    "CQ0100": "the text is not a valid statement",
    "CQ0101": "unexpected character or token",
    "CQ0102": "unclosed string, quoted name or comment",
    "CQ0103": "the query exceeds a limit (size, tokens, nesting, copies of a row)",
    "CQ0104": "a literal cannot be read",
    "CQ0105": "the text is not valid UTF-8 or holds a forbidden character",
    # 02xx: names
    "CQ0201": "unknown stream, table, view or sink",
    "CQ0202": "a name is defined twice",
    "CQ0203": "unknown column",
    "CQ0204": "ambiguous column",
    "CQ0205": "unknown function",
    "CQ0206": "unknown parameter",
    "CQ0207": "unknown option",
    "CQ0208": "invalid value of an option",
    # 03xx: types
    "CQ0301": "operands have incompatible types",
    "CQ0302": "a function does not take these arguments",
    "CQ0303": "a cast between these types does not exist",
    "CQ0304": "a DECIMAL needs more than 38 digits",
    "CQ0305": "a condition is not BOOLEAN",
    "CQ0306": "a constant expression cannot be computed",
    "CQ0307": "the inputs of a set operation, or of INSERT, do not match",
    "CQ0308": "a condition is the same for every row",
    "CQ0309": "a conversion drops decimal places",
    "CQ0310": "the length of a VARCHAR or a VARBINARY has no effect",
    # 04xx: time, windows, aggregates
    "CQ0401": "a window or time-ordered operator needs a watermark",
    "CQ0402": "the column is not the event time of its input",
    "CQ0403": "invalid size, slide or offset of a window",
    "CQ0404": "a column is neither grouped nor aggregated",
    "CQ0405": "an aggregate or window function is not allowed here",
    "CQ0406": "the result would never be final on an unbounded input",
    "CQ0407": "state would grow without a bound",
    "CQ0408": "a join lacks an equality, or a bound on its event times, that it needs",
    "CQ0409": "duplicate column names in the output",
    "CQ0410": "a join compares every row of one side with every row of the other",
    "CQ0411": "a trigger must identify table rows by primary key",
    # 05xx: not supported
    "CQ0501": "this statement or clause is not supported yet",
    "CQ0502": "this combination of supported parts is not supported yet",
    # 06xx: environment
    "CQ0601": "a file or directory cannot be opened",
    "CQ0602": "a connector cannot read or write this stream",
    "CQ0603": "the schema of a source does not match its declaration",
    "CQ0604": "a needed package is not installed",
    "CQ0605": "the output cannot be written",
    "CQ0606": "the command line is wrong",
    "CQ0607": "the engine does not run on this platform",
    # 07xx: data
    "CQ0701": "a source file is damaged or has another format",
    "CQ0702": "a value cannot be read as the type of its column",
    "CQ0703": "an event time is NULL or cannot be read",
    "CQ0704": "a NOT NULL column holds NULL",
    "CQ0705": "arithmetic overflow",
    "CQ0706": "division by zero",
    "CQ0707": "a value cannot be cast",
    "CQ0708": "a function has no result for this value",
    "CQ0709": "a row is late, and the stream is declared with `late = 'fail'`",
    "CQ0710": "a row has the wrong number of fields",
    "CQ0711": "an initial row of a table is rejected: its key already exists, or a CHECK is FALSE",
    # 08xx: limits while running
    "CQ0801": "memory is exhausted",
    "CQ0802": "a limit of the engine is reached",
    # 09xx: engines
    "CQ0901": "this engine cannot run the query",
    "CQ0902": "the engine failed",
    "CQ0903": "user function not compiled; it runs in Python for each row",
    "CQ0904": "transactions run without locks: the result changes from run to run",
    "CQ0999": "internal error (a bug in cq)",
}

Severity = Literal["error", "warning", "data error", "told"]
TOLD: Final = "told"  # an error that follows from another one, which is shown instead

PICTURE_COLUMNS = 160  # longest source line drawn whole; longer ones are cut around the caret


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text: lines and columns count from 1, columns in code points; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The stretch from the start of this one to the end of `other`."""
        return Span(self.line, self.column, other.end_line, other.end_column)

    def holds(self, other: Span) -> bool:
        """Whether `other` lies within this stretch."""
        starts = (self.line, self.column) <= (other.line, other.column)
        return starts and (other.end_line, other.end_column) <= (self.end_line, self.end_column)


NOWHERE = Span(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A query text and the name errors show for it (a path as typed, `<stdin>`, `<command>`, `<python>`)."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """Line `number` (from 1) without its end; empty when there is none."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Label:
    """Words under another stretch of the text, underlined with dashes."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    code: a key of CODES.  message: the cause, without a final full stop.  span: what the caret marks.  label: words
    beside the caret.  help: ways out, one line each.  labels: further marked places.  source: the text that contains
    the span, filled in where it is known.  place: replaces the span in data errors (`file:row`).
    """

    code: str
    message: str
    span: Span = NOWHERE
    label: str = ""
    help: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    severity: Severity = "error"
    source: SourceText | None = None
    place: str = ""

    def __post_init__(self) -> None:
        assert self.code in CODES, f"unregistered error code {self.code}"

    def at(self, source: SourceText) -> Diagnostic:
        """The same finding, in `source` unless it already knows its text."""
        return self if self.source is not None else replace(self, source=source)


class CqError(Exception):
    """Base of all errors cq raises on purpose. Holds at least one diagnostic; `str()` is its drawing."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        assert diagnostics, "an error without a diagnostic"
        super().__init__(diagnostics[0].message)
        self.diagnostics = diagnostics

    @property
    def first(self) -> Diagnostic:
        return self.diagnostics[0]

    @property
    def code(self) -> str:
        return self.first.code

    @property
    def line(self) -> int:
        return self.first.span.line

    @property
    def column(self) -> int:
        return self.first.span.column

    @property
    def span(self) -> Span:
        return self.first.span

    @property
    def hint(self) -> str:
        return self.first.help[0] if self.first.help else ""

    def at(self, source: SourceText) -> CqError:
        """The same error with every diagnostic placed in `source`."""
        return type(self)(*(d.at(source) for d in self.diagnostics))

    def __str__(self) -> str:
        return "\n".join(render(d) for d in self.diagnostics)


class CompileError(CqError):
    """The query text is at fault. Exit code 1."""


class DataError(CqError):
    """The data is at fault: everything before the place was delivered. Exit code 1."""


class UsageError(CqError):
    """Options, files or the installation are at fault. Exit code 2."""


class EngineError(CqError):
    """A limit was reached or an engine failed. Exit code 2."""


@contextmanager
def mistakes_told() -> Iterator[None]:
    """Raise a bug of ours as an EngineError (CQ0999). Exceptions of other code, such as an input's, pass through."""
    try:
        yield
    except (CqError, Warning):  # the latter if the caller has turned them into errors
        raise
    except Exception as error:
        if not _raised_here(error.__traceback__):
            raise
        raise EngineError(internal_error(error)) from error


def internal_error(error: BaseException) -> Diagnostic:
    """The user's view of a bug of ours: one line with its cause and place, and how to report it; also of a package that
    is missing."""
    if isinstance(error, MemoryError):
        return Diagnostic("CQ0801", "out of memory", help=("use smaller batches: -s batch_rows=1024",))
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package not in {"", "cq"}:
        way = f"install it for this Python: {sys.executable} -m pip install {package}"
        return Diagnostic("CQ0604", f"cq needs the package {package}, which is not installed", help=(way,))
    place = _innermost(error.__traceback__)
    cause = str(error).splitlines()[0][:300] if str(error) else ""
    message = f"{type(error).__name__}{': ' + cause if cause else ''}{' in ' + place if place else ''}"
    way = "this is a bug in cq: please report it with the query and the traceback, which cq --debug shows in a shell"
    return Diagnostic("CQ0999", message, help=(way,))


def _raised_here(trace: TracebackType | None) -> bool:
    """Whether the last frame it passed through is ours."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and _is_ours(trace)


def _is_ours(trace: TracebackType) -> bool:
    name = trace.tb_frame.f_globals.get("__name__", "")
    return isinstance(name, str) and name.split(".")[0] == "cq"


def _innermost(trace: TracebackType | None) -> str:
    """The last frame of ours that the error passed through, as module:line."""
    place = ""
    while trace is not None:
        if _is_ours(trace):
            place = f"{trace.tb_frame.f_globals['__name__']}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def compile_error(
    code: str,
    message: str,
    span: Span,
    *,
    label: str = "",
    help: str | Iterable[str] = (),
    labels: tuple[Label, ...] = (),
) -> CompileError:
    """A `CompileError` with one diagnostic; `help` may be one line or several."""
    ways_out = (help,) if isinstance(help, str) else tuple(help)
    return CompileError(Diagnostic(code, message, span, label, tuple(h for h in ways_out if h), labels))


@dataclass(slots=True)
class Findings:
    """Collects diagnostics so that one run reports all mistakes of a file."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add(self, error: CqError) -> None:
        self.diagnostics.extend(error.diagnostics)

    def raise_if_any(self) -> None:
        """Raise one `CompileError` with everything collected, in order of place."""
        if self.diagnostics:
            # an alias in GROUP BY is bound at its place and where it is used: one mistake
            raise CompileError(*sorted(dict.fromkeys(self.diagnostics), key=lambda d: (d.span.line, d.span.column)))


def each(step: Callable[[S], T], of: Iterable[S]) -> list[T]:
    """Call `step` for each; if some fail, raise one `CompileError` with all mistakes, up to MAX_MISTAKES."""
    findings = Findings()
    results = []
    for one in of:
        try:
            results.append(step(one))
        except CompileError as error:
            findings.add(error)
            if len(findings.diagnostics) >= MAX_MISTAKES:
                break
    findings.raise_if_any()
    return results


def both(first: Callable[[], S], second: Callable[[], T]) -> tuple[S, T]:
    """The results of both; if both fail, one `CompileError` with the mistakes of both."""
    takes: tuple[Callable[[], Any], ...] = (first, second)
    one, other = each(lambda take: take(), takes)
    return one, other


LONGEST_MEANT = 100  # characters of a name: comparing two costs their product


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`did you mean "x"?` for the nearest known name, or the empty string, also if a program passed no text.

    Near: at most a third of the letters are wrong, as in rustc, or it abbreviates the name, as `hdr` does `header`.
    With more, it is another word: nobody who wrote LIST_FILTER meant IS_FINITE, although they share seven letters.
    Common first words do not count: LIST_ZIP is as far from LIST_MIN as ZIP from MIN.
    """
    typed = str(name).lower()
    if len(typed) > LONGEST_MEANT:
        return ""
    names = [k for k in set(known) if len(k) <= LONGEST_MEANT]
    near = [(apart, k) for k in names if (apart := _letters_apart(typed, k.lower())) is not None]
    longer = [(len(k), k) for k in names if len(typed) > 2 and _is_short_for(typed, k.lower())]
    meant = min(near or longer, default=None)
    return f'did you mean "{meant[1]}"?' if meant else ""


def _is_short_for(a: str, b: str) -> bool:
    """Whether b starts like a and contains a's letters in order."""
    rest = iter(b)
    return a[0] == b[:1] and all(letter in rest for letter in a)


def _letters_apart(a: str, b: str) -> int | None:
    """How many letters must be changed, added, removed or swapped with the next to turn a into b; None if too many."""
    while a.partition("_")[:2] == b.partition("_")[:2] and a.endswith("_") == b.endswith("_") and "_" in a:
        a, b = a.partition("_")[2], b.partition("_")[2]
    most = min(max(len(a), 3) // 3, len(a) - 1)
    if abs(len(a) - len(b)) > most:
        return None
    before, row = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, x in enumerate(a):
        earlier, before, row = before, row, [i + 1]
        for j, y in enumerate(b):
            apart = min(before[j] + (x != y), before[j + 1] + 1, row[j] + 1)
            if i and j and x == b[j - 1] and y == a[i - 1]:
                apart = min(apart, earlier[j - 1] + 1)
            row.append(apart)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None


def amount(count: int, noun: str) -> str:
    """The count with its noun: `1 column`, `2 columns`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def printable(text: str) -> str:
    """`text` with control, format and unpaired characters escaped: it cannot move a cursor or forge a line."""
    return "".join(c if _is_plain(c) else _escape(c) for c in text)


def _is_plain(c: str) -> bool:
    return c == " " or (c.isprintable() and unicodedata.category(c) not in {"Cf", "Co", "Cs"})


def _escape(c: str) -> str:
    return " " if c == "\t" else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{{{ord(c):x}}}"


def shows_colours(stream: IO[str]) -> bool:
    """Whether this stream is a terminal that shows colours, and the user wants them."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def render(d: Diagnostic) -> str:
    """The drawing of one diagnostic, several lines, without a final newline."""
    lines = [f"{d.severity}[{d.code}]: {printable(d.place) + ': ' if d.place else ''}{printable(d.message)}"]
    margin = ""
    if d.source is not None and d.span != NOWHERE:
        number = str(d.span.line)
        margin = " " * len(number)
        lines.append(f"{margin}--> {printable(d.source.name)}:{d.span.line}:{d.span.column}")
        lines.append(f"{margin} |")
        same_line = [x for x in d.labels if x.span.line == d.span.line]
        lines.extend(_marked_line(d.source, number, margin, d.span, d.label, same_line))
        for other in d.labels:
            if other.span.line != d.span.line:
                lines.append(f"{margin} = note: {printable(other.text)} (line {other.span.line})")
    lines.extend(f"{margin} = help: {printable(h)}" for h in d.help)
    return "\n".join(lines)


def _marked_line(
    source: SourceText, number: str, margin: str, span: Span, label: str, others: list[Label]
) -> list[str]:
    raw = source.line(span.line)
    start = max(0, span.column - 1 - PICTURE_COLUMNS // 2) if len(raw) > PICTURE_COLUMNS else 0
    cut = raw[start : start + PICTURE_COLUMNS]
    # position of each code point in the escaped line, so that the caret is under the text shown
    offsets = [0]
    for c in cut:
        offsets.append(offsets[-1] + len(c if _is_plain(c) else _escape(c)))

    def stretch(s: Span) -> tuple[int, int]:
        first = min(max(s.column - 1 - start, 0), len(cut))
        last = s.end_column - 1 - start if s.end_line == s.line else len(cut)
        begin = offsets[first]
        return begin, max(begin + 1, offsets[min(max(last, first), len(cut))])

    marks = [(*stretch(span), "^", label)] + [(*stretch(x.span), "-", x.text) for x in others]
    marks.sort(key=lambda m: m[0])
    under = [" "] * max(m[1] for m in marks)
    for begin, end, sign, _ in marks:
        under[begin:end] = sign * (end - begin)
    *earlier, last_mark = marks
    out = [f"{number} | {printable(cut)}", f"{margin} | {''.join(under)} {printable(last_mark[3])}".rstrip()]
    out.extend(f"{margin} | {' ' * begin}{printable(text)}" for begin, _, _, text in reversed(earlier) if text)
    return out
