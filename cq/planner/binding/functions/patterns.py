"""GLOB and SIMILAR TO: patterns of other kinds as regular expressions that match a whole text."""

from __future__ import annotations

from collections.abc import Callable

from cq.errors import CompileError, compile_error
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.types import VARCHAR

_OF_REGEX = set(r"\.^$|()[]{}*+?")
_SHARED = set("|*+?(){}")  # characters that mean the same in SIMILAR TO and in regular expressions


class _BadPattern(Exception):
    """Why a text is not a valid pattern."""


def whole_regex(node: ast.Like, pattern: Expr, escape: Expr | None) -> Literal:
    """The equivalent regular expression of a GLOB or SIMILAR TO pattern. CQ0302 for an invalid one."""
    text = _constant(node, pattern)
    sign = "\\" if escape is None else _constant(node, escape)
    if escape is not None and (node.op == "GLOB" or len(sign) > 1):
        raise _refused(
            node, f"{node.op} does not take this ESCAPE", "in GLOB, use brackets: [*]; in SIMILAR TO, one character"
        )
    try:
        inner = _of_glob(text) if node.op == "GLOB" else _of_similar(text, sign)
    except _BadPattern as bad:
        way = "in brackets, write the sign itself: [*]" if node.op == "GLOB" else "double the sign: \\\\"
        raise _refused(node, f"in the pattern '{text}' {bad}", way) from None
    return Literal(VARCHAR, False, rf"(?s)\A(?:{inner})\z", span=pattern.span)


def _constant(node: ast.Like, given: Expr) -> str:
    if isinstance(given, Literal) and isinstance(given.value, str):
        return given.value
    raise _refused(node, f"{node.op} needs a literal pattern", "write RLIKE '^…$', or LIKE, which takes any text")


def _refused(node: ast.Like, message: str, help: str) -> CompileError:
    return compile_error("CQ0302", message, node.pattern.span, help=help)


def _of_glob(text: str) -> str:
    """`*` any text, `?` one code point, `[a-z]` and `[!a-z]` one of a set."""
    return _translated(text, "", lambda sign: {"*": ".*", "?": "."}.get(sign, _quoted(sign)))


def _of_similar(text: str, escape: str) -> str:
    """`%` any text, `_` one code point; `|`, `*`, `+`, `?`, `{2,3}`, groups and sets as in regular expressions."""
    signs = {"%": ".*", "_": "."}
    return _translated(text, escape, lambda sign: signs.get(sign) or (sign if sign in _SHARED else _quoted(sign)))


def _translated(text: str, escape: str, sign: Callable[[str], str]) -> str:
    """The text with sets unchanged, escaped characters quoted, and other characters translated by `sign`."""
    out, at = list[str](), 0
    while at < len(text):
        if escape and text[at] == escape:
            if at + 1 == len(text):
                raise _BadPattern("the last character escapes nothing")
            out.append(_quoted(text[at + 1]))
            at += 2
        elif text[at] == "[":
            end = text.find("]", at + 2)
            if end < 0:
                raise _BadPattern("a [ is not closed")
            inside = text[at + 1 : end]
            negated = "^" if inside[0] in "!^" and len(inside) > 1 else ""
            out.append(f"[{negated}{_of_set(inside[len(negated) :])}]")
            at = end + 1
        else:
            out.append(sign(text[at]))
            at += 1
    return "".join(out)


def _of_set(inside: str) -> str:
    return "".join("\\" + c if c in r"\[]^&" else c for c in inside)


def _quoted(sign: str) -> str:
    return "\\" + sign if sign in _OF_REGEX else sign
