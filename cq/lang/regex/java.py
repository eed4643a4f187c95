"""A regular expression in Java's syntax, for Spark: everything the two could read differently is spelled out."""

from __future__ import annotations

from cq.lang.regex.syntax import (
    BORDER,
    END,
    LINE_END,
    LINE_START,
    NO_BORDER,
    START,
    Capture,
    Choice,
    CodePoints,
    Concatenation,
    Node,
    Ranges,
    Repeat,
    Where,
    parse,
)

_LETTER = "[0-9A-Za-z_]"
_PLACES = {
    START: r"\A",
    END: r"\z",
    LINE_START: r"(?:\A|(?<=\n))",
    LINE_END: r"(?=\n|\z)",
    BORDER: f"(?:(?<={_LETTER})(?!{_LETTER})|(?<!{_LETTER})(?={_LETTER}))",
    NO_BORDER: f"(?:(?<={_LETTER})(?={_LETTER})|(?<!{_LETTER})(?!{_LETTER}))",
}


def java_text(pattern: str) -> str:
    """The pattern in Java's syntax."""
    return _written(parse(pattern)[0])


def _written(node: Node) -> str:
    match node:
        case CodePoints(ranges=ranges):
            return _points(ranges)
        case Concatenation(items=items):
            return "".join(map(_written, items))
        case Choice(options=options):
            return f"(?:{'|'.join(map(_written, options))})"
        case Capture(item=item):
            return f"({_written(item)})"
        case Where(place=place):
            return _PLACES[place]
        case Repeat(item=item, least=least, most=most, greedy=greedy):
            count = f"{{{least},{'' if most is None else most}}}"
            return f"(?:{_written(item)}){count}{'' if greedy else '?'}"


def _points(ranges: Ranges) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _point(ranges[0][0])
    inside = "".join(_point(low) if low == high else f"{_point(low)}-{_point(high)}" for low, high in ranges)
    return f"[{inside}]" if inside else r"[^\x{0}-\x{10FFFF}]"


def _point(point: int) -> str:
    letter = chr(point)
    return letter if letter.isascii() and letter.isalnum() else f"\\x{{{point:X}}}"


def java_replacement(pieces: tuple[str | int, ...]) -> str:
    """Texts and group numbers as a Java replacement."""
    return "".join(f"${p}" if isinstance(p, int) else "".join("\\" + c for c in p) for p in pieces)
