"""A place where parsing a statement fails, and questions about it."""

from __future__ import annotations

from collections.abc import Callable

from cq.errors import Span
from cq.grammar.lexer import Lexed, Token
from cq.records import dataclass

COMPARING = frozenset(["=", "<>", "!=", "<", "<=", ">", ">=", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "NOT"])


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """A statement in which parsing fails. tokens [first, end) are the statement, `position` the one at fault (`end`
    when it stops too early).  expected: the terminals allowed there.  replay(replaced, upto): the terminals allowed at
    `upto` if some tokens had other kinds, or None if the parse stops before."""

    lexed: Lexed
    first: int
    position: int
    end: int
    expected: frozenset[str]
    expression_starts: frozenset[str]
    replay: Callable[[dict[int, str], int], frozenset[str] | None]
    keywords: dict[str, str]

    @property
    def token(self) -> Token | None:
        return self.lexed.tokens[self.position] if self.position < self.end else None

    @property
    def before(self) -> Token | None:
        return self.lexed.tokens[self.position - 1] if self.position > self.first else None

    @property
    def after(self) -> Token | None:
        return self.lexed.tokens[self.position + 1] if self.position + 1 < self.end else None

    def span(self, token: Token) -> Span:
        return self.lexed.places.span(token.start, token.end)

    @property
    def here(self) -> Span:
        """The token at fault, or the place after the last one."""
        if self.token is not None:
            return self.span(self.token)
        last = self.lexed.tokens[self.end - 1].end if self.end > self.first else 0
        return self.lexed.places.span(last, last)

    def word(self, position: int) -> str:
        return self.lexed.tokens[position].word if self.first <= position < self.end else ""

    def open_at(self) -> Token | None:
        """The innermost bracket or block that is open at the fault."""
        closes = {")": ("(",), "]": ("[",), "END": ("CASE", "BEGIN")}
        opened: list[Token] = []
        for position in range(self.first, self.position):
            word = self.word(position)
            if word in ("(", "[", "CASE", "BEGIN"):
                opened.append(self.lexed.tokens[position])
            elif word in closes and self.word(position + 1) != "IF" and opened and opened[-1].word in closes[word]:
                opened.pop()
        return opened[-1] if opened else None


def shown(token: Token) -> str:
    """The start of a token, for a message."""
    text = token.text.split("\n")[0]
    return text if len(text) <= 40 else text[:37] + "…"


def text_between(fault: SyntaxFault, first: int, end: int) -> str:
    """The tokens [first, end) as the query writes them, on one line and without comments."""
    parts, behind = list[str](), -1
    for token in fault.lexed.tokens[first:end]:
        parts.append(token.text if token.start == behind or not parts else f" {token.text}")
        behind = token.end
    return "".join(parts)
