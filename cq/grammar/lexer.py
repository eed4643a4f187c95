"""Text into tokens: one regular expression, every limit and every forbidden character checked on the way.

A word may have several kinds. `Token.kinds` lists them, the most specific first: the parser takes the first that is
allowed at that point. So a keyword that is not RESERVED is a name wherever the keyword is not allowed.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Mapping

from cq.errors import Diagnostic, Span
from cq.grammar.ast import Comment
from cq.grammar.foreign_words import foreign_kinds
from cq.grammar.intervals import interval_unit
from cq.grammar.signs import LOOKALIKE_SIGNS, SIGN_HELP, SMART_QUOTES, braces_help, number_help, unescaped
from cq.grammar.unsupported import GATHERED
from cq.records import dataclass, field

MAX_TEXT_BYTES = 1 << 20
MAX_TOKENS = 200_000  # and so at most 100,000 values in a list
MAX_NESTING = 200  # open parentheses, brackets and CASE at one place
MAX_NAME_BYTES = 255
MAX_DIGITS = 400
MAX_FINDINGS = 100  # a text with more mistakes than this is not a query; explaining each costs about a millisecond

# Words that are never names unless quoted. Kept short: each one takes a column name from somebody.
RESERVED = frozenset(
    [
        *("ALL", "AND", "AS", "BETWEEN", "BY", "CASE", "CREATE", "CROSS"),
        *("DISTINCT", "ELSE", "ELSEIF", "ELSIF", "EMIT"),
        *("END", "EXCEPT", "EXISTS", "FALSE", "FOR", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INTERSECT"),
        *("INTERVAL", "INTO", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "NOT", "NULL", "ON", "OR", "ORDER"),
        *("QUALIFY", "RIGHT", "SELECT", "TABLE", "THEN", "TRUE", "UNION", "USING", "VALUES", "WHEN", "WHERE", "WITH"),
    ]
)
# Words that are calls without parentheses, and therefore not names either.
NILADIC = frozenset(["CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"])

# These are keywords only before one of the given words, signs or kinds of token; everywhere else they are names.
ONLY_BEFORE: dict[str, frozenset[str]] = {
    word: frozenset(followers.split())
    for word, followers in {
        "ANY": "(",
        "AT": "TIME",
        "ASOF": "JOIN LEFT INNER",
        "CAST": "(",
        "CHECK": "(",
        "CUBE": "(",
        "CURRENT": "ROW",
        **dict.fromkeys(["DATE", "DATETIME"], "STRING"),
        "DESCRIPTOR": "(",
        "EXTRACT": "(",
        "FETCH": "FIRST NEXT",
        "FILTER": "(",
        "GENERATED": "ALWAYS",
        "GROUPING": "SETS",
        "IDLE": "TIMEOUT",
        "IGNORE": "NULLS",
        "MATCH_CONDITION": "(",
        "NATURAL": "JOIN INNER LEFT RIGHT FULL",
        "GLOB": "STRING",
        "OFFSET": "NUMBER PARAMETER (",
        "OVERLAY": "(",
        "PARTITION": "BY",
        "PRIMARY": "KEY",
        "RESPECT": "NULLS",
        "ROLLUP": "(",
        **dict.fromkeys(["RLIKE", "REGEXP"], "STRING"),
        **dict.fromkeys(["SEMI", "ANTI"], "JOIN"),
        "SETS": "(",
        "SOME": "(",
        "SUBSTRING": "(",
        "TIME": "STRING ZONE",
        "TIMESTAMP": "STRING",
        **dict.fromkeys(["TIMESTAMP_LTZ", "TIMESTAMPTZ"], "STRING"),
        "TRIM": "(",
        "TRY_CAST": "(",
        "UNBOUNDED": "PRECEDING FOLLOWING",
        "UNNEST": "(",
        "WATERMARK": "FOR",
        "WITHIN": "GROUP",
        **dict.fromkeys(["GROUPS", "RANGE"], "NUMBER PARAMETER INTERVAL BETWEEN UNBOUNDED CURRENT"),
        **dict.fromkeys(["CROSS", "FULL", "INNER", "LEFT", "RIGHT"], "JOIN OUTER ASOF SEMI ANTI"),
    }.items()
}
ONLY_AFTER: dict[str, frozenset[str]] = {
    "PRECISION": frozenset(["DOUBLE"]),
    "VARYING": frozenset(["CHARACTER", "CHAR"]),
    "TO": frozenset(["UNIT", "SIMILAR"]),
}

_LIKE_NOT_EQUAL = {"!=": "<>", "<=>": "<>"}  # comparisons allowed exactly where <> is
_QUERY_STARTS = (["SELECT"], ["VALUES"], ["WITH"], ["FROM"], ["("])
_JOINS_OF_OTHERS = frozenset(["ANTI", "POSITIONAL", "SEMI"])

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]+)
    | (?P<comment>--[^\n]*|/\*[\s\S]*?\*/)
    | (?P<open_comment>/\*)
    | (?P<string>'[^']*(?:''[^']*)*')
    | (?P<escaped>[eE]'(?:[^'\\]|\\[\s\S]|'')*')
    | (?P<binary>[xX]'[^']*')
    | (?P<dollar>\$(?P<tag>(?:[^\W\d]\w*)?)\$[\s\S]*?\$(?P=tag)\$)
    | (?P<quoted>"[^"\n]*(?:""[^"\n]*)*"|`[^`\n]*(?:``[^`\n]*)*`)
    | (?P<open_quote>['"`])
    | (?P<number>(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<sign>::|->>|->|\|\||<>|<=>|<=|>=|<<|>>|=>|!=|!?~~?\*?|==|//|\[\s*\]|&(?!&)|[-+*/%=<>(),.;|\[\]])
    | (?P<parameter>:[^\W\d]\w*)
    | (?P<colon>:=?)
    | (?P<word>[^\W\d]\w*)""",
    re.VERBOSE,
)
_OTHER_BASES = re.compile("[xX](_?[0-9A-Fa-f]){1,32}|[bB](_?[01]){1,128}|[oO](_?[0-7]){1,42}")
_BINARY = re.compile("([0-9A-Fa-f]{2})*")
_BRACES = re.compile(r"\$?\{[^{};]{0,1000}\}|\{\{[^{};]{0,1000}\}\}|\{")
_COLON_HELP = "write a parameter as :name, a cast as x::type"
_ASSIGNED_HELP = "name an argument with =>; structs are not supported: use a column for each field"


@dataclass(slots=True)
class Token:
    """kinds: its possible kinds, the most specific first.  value: the folded name, the string without quotes, or the
    text.  start, end: offsets into the text."""

    kinds: tuple[str, ...]
    text: str
    value: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """Upper-case text of a bare word, sign or number; a marker for anything quoted."""
        return "STRING" if self.kinds == ("STRING",) else self.text.upper() if self.text[0] not in '"`' else "NAME"


class Places:
    """Converts offsets in a text to lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        self._starts.extend(m.end() for m in re.finditer("\n", text))

    def span(self, start: int, end: int) -> Span:
        first = bisect_right(self._starts, start)
        last = bisect_right(self._starts, end) if end > start else first
        return Span(first, start - self._starts[first - 1] + 1, last, end - self._starts[last - 1] + 1)


@dataclass(slots=True)
class Lexed:
    """The tokens of a text, its comments, and errors: (offset, finding), in order. fatal: the text as a whole is
    refused and need not be parsed."""

    places: Places
    tokens: list[Token] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    faults: list[tuple[int, Diagnostic]] = field(default_factory=list)
    fatal: bool = False

    def fault(self, code: str, message: str, start: int, end: int, *, label: str = "", help: str = "") -> None:
        span = self.places.span(start, end)
        self.faults.append((start, Diagnostic(code, message, span, label, (help,) if help else ())))
        self.fatal = self.fatal or len(self.faults) >= MAX_FINDINGS


def tokenize(text: str, keywords: Mapping[str, str]) -> Lexed:
    """All tokens of `text`, with lexical errors beside them. keywords: word or sign -> name of its terminal."""
    out = Lexed(Places(text))
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        out.fault(
            "CQ0103", f"the text is longer than {MAX_TEXT_BYTES >> 20} MiB", 0, 1, help="split it into several files"
        )
        out.fatal = True
        return out
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text) and not out.fatal:
        match = _TOKEN.match(text, at)
        if match is None:
            at = _refuse_character(out, text, at)
            continue
        start, at = at, match.end()
        kind = match.lastgroup or ""
        if kind in ("open_quote", "open_comment"):
            at = _refuse_open(out, text, start, kind)
            continue
        _READERS[kind](out, match.group(), start)
        if len(out.tokens) > MAX_TOKENS:
            out.fault(
                "CQ0103", f"the text has more than {MAX_TOKENS:,} tokens", start, at, help="split it into several files"
            )
            out.fatal = True
    for position in range(len(out.tokens)):
        _classify(out.tokens, position, keywords)
    _check_nesting(out)
    out.faults.sort(key=lambda f: f[0])
    return out


# -------------------------------------------------------------------------------------------------- one of a kind


def _read_space(out: Lexed, text: str, start: int) -> None:
    pass


def _read_comment(out: Lexed, text: str, start: int) -> None:
    _check_characters(out, text, start, "a comment")
    span = out.places.span(start, start + len(text))
    previous = out.tokens[-1] if out.tokens else None
    alone = previous is None or out.places.span(previous.start, previous.end).end_line < span.line
    out.comments.append(Comment(text.rstrip(), alone, span=span))


def _read_string(out: Lexed, text: str, start: int) -> None:
    _check_characters(out, text, start, "a string")
    out.tokens.append(Token(("STRING",), text, text[1:-1].replace("''", "'"), start, start + len(text)))


def _read_escaped(out: Lexed, text: str, start: int) -> None:
    """PostgreSQL's `E'a\\nb'`."""
    _check_characters(out, text, start, "a string")
    value = unescaped(text[2:-1].replace("''", "'"))
    problem = next(filter(None, map(_forbidden, value)), None) if not value.isprintable() else None
    if problem is not None:
        help = "leave the escape out, or pass the text as a :parameter"
        out.fault("CQ0105", f"an escape of this string stands for {problem}", start, start + len(text), help=help)
    out.tokens.append(Token(("STRING",), text, value, start, start + len(text)))


def _read_binary(out: Lexed, text: str, start: int) -> None:
    """`X'0aFF'`: two hexadecimal digits for each byte."""
    digits = text[2:-1]
    if _BINARY.fullmatch(digits) is None:
        help = "write two hexadecimal digits for each byte, as X'0AFF'"
        out.fault("CQ0104", f"{text[:40]} is not a BINARY", start, start + len(text), help=help)
    out.tokens.append(Token(("BINARY",), text, digits.upper(), start, start + len(text)))


def _read_dollar(out: Lexed, text: str, start: int) -> None:
    """`$$it's$$`, `$tag$it's$tag$`: every character stands for itself."""
    _check_characters(out, text, start, "a string")
    tag = text.index("$", 1) + 1
    out.tokens.append(Token(("STRING",), text, text[tag:-tag], start, start + len(text)))


def _read_quoted(out: Lexed, text: str, start: int) -> None:
    _check_characters(out, text, start, "a name")
    name = text[1:-1].replace(text[0] * 2, text[0])
    if not name:
        out.fault("CQ0104", "empty quoted name", start, start + 2, help="an empty string is written ''")
    _append_name(out, ("NAME",), text, name, start)


def _read_number(out: Lexed, text: str, start: int) -> None:
    if sum(c.isdigit() for c in text) > MAX_DIGITS:
        out.fault("CQ0103", f"a number has more than {MAX_DIGITS} digits", start, start + len(text))
    digits = text.replace("_", "")
    out.tokens.append(Token(("NUMBER",), digits, digits, start, start + len(text)))


def _read_sign(out: Lexed, text: str, start: int) -> None:
    if text == ">>" and _in_type(out.tokens):  # STRUCT<xs ARRAY<BIGINT>>
        _read_sign(out, ">", start)
        text, start = ">", start + 1
    meant = "=" if text == "==" else text
    out.tokens.append(Token(("SIGN",), meant, meant, start, start + len(text)))


def _in_type(tokens: list[Token]) -> bool:
    """Whether the `<` of a type is open after the last token."""
    closed = 0
    for n in range(len(tokens) - 1, max(0, len(tokens) - MAX_NESTING), -1):
        if tokens[n].text == ">":
            closed += 1
        elif tokens[n].text == "<" and closed:
            closed -= 1
        elif tokens[n].text == "<":
            return tokens[n - 1].word in ("ARRAY", "ROW", "STRUCT")
    return False


def _read_colon(out: Lexed, text: str, start: int) -> None:
    if text == ":" and _in_subscript(out.tokens):
        out.tokens.append(Token(("SIGN",), text, text, start, start + 1))
    elif text == ":" and any(t.word == "LAMBDA" for t in out.tokens[-4:]):  # `lambda x, y: x + y`
        out.fault("CQ0101", "functions as arguments are not supported", start, start + 1, help=GATHERED)
    else:
        help = _COLON_HELP if text == ":" else _ASSIGNED_HELP
        out.fault("CQ0101", f"`{text}` is not valid here", start, start + len(text), help=help)


def _in_subscript(tokens: list[Token]) -> bool:
    """Whether the innermost bracket open after the last token is `[`."""
    closed = 0
    for token in tokens[: -MAX_NESTING - 1 : -1]:
        if token.text in (")", "]"):
            closed += 1
        elif token.text in ("(", "["):
            if not closed:
                return token.text == "["
            closed -= 1
    return False


def _read_parameter(out: Lexed, text: str, start: int) -> None:
    _check_word(out, text[1:], start + 1)
    _append_name(out, ("PARAMETER",), text, text[1:].lower(), start)


def _read_word(out: Lexed, text: str, start: int) -> None:
    previous = out.tokens[-1] if out.tokens else None
    if previous is not None and previous.end == start and previous.kinds == ("NUMBER",):
        whole = previous.text + text
        if previous.text == "0" and _OTHER_BASES.fullmatch(text):
            digits = str(int(whole, 0))
            out.tokens[-1] = Token(("NUMBER",), digits, digits, previous.start, start + len(text))
            return
        out.fault(
            "CQ0104",
            f"`{whole[:40]}` is neither a number nor a name",
            previous.start,
            start + len(text),
            help=number_help(previous.text, text.upper()),
        )
    _check_word(out, text, start)
    _append_name(out, ("WORD",), text, text.lower(), start)


_READERS: dict[str, Callable[[Lexed, str, int], None]] = {
    "space": _read_space,
    "comment": _read_comment,
    "string": _read_string,
    "escaped": _read_escaped,
    "binary": _read_binary,
    "dollar": _read_dollar,
    "quoted": _read_quoted,
    "number": _read_number,
    "sign": _read_sign,
    "parameter": _read_parameter,
    "colon": _read_colon,
    "word": _read_word,
}


def _append_name(out: Lexed, kinds: tuple[str, ...], text: str, name: str, start: int) -> None:
    if len(name) * 4 > MAX_NAME_BYTES and len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        out.fault("CQ0103", f"a name is longer than {MAX_NAME_BYTES} bytes", start, start + len(text))
    out.tokens.append(Token(kinds, text, name, start, start + len(text)))


# ------------------------------------------------------------------------------------------------ what is refused


def _refuse_open(out: Lexed, text: str, start: int, kind: str) -> int:
    """Report that nothing closes what opens at `start` and return where to continue: a quoted name ends with its line,
    a string or comment with the text."""
    if kind == "open_comment":
        out.fault("CQ0102", "unclosed comment", start, start + 2, label="opened here", help="close it with */")
        return len(text)
    sign = text[start]
    if sign == "'":
        opening = next((t.start for t in out.tokens if _looks_unclosed(text, t)), start)
        help = "close it with '; to write a quote inside a string, double it: ''"
        out.fault("CQ0102", "unclosed string", opening, opening + 1, label="opened here", help=help)
        return len(text)
    line_end = text.find("\n", start)
    end = line_end if line_end >= 0 else len(text)
    out.fault("CQ0102", "unclosed quoted name", start, start + 1, label="opened here", help=f"close it with {sign}")
    out.tokens.append(Token(("NAME",), text[start:end], "?", start, end))
    return end


def _looks_unclosed(text: str, token: Token) -> bool:
    """A string that crosses a line end or runs into a word: its own closing quote is probably the missing one."""
    if token.kinds != ("STRING",):
        return False
    following = text[token.end : token.end + 1]
    return "\n" in token.text or following.isalnum() or following == "_"


def _refuse_character(out: Lexed, text: str, at: int) -> int:
    """Report the character at `at` and return where to continue. What it was meant for replaces it."""
    c = text[at]
    meant = SMART_QUOTES.get(c)
    if meant is not None:
        closing = next((i for i in range(at + 1, min(len(text), at + 1000)) if SMART_QUOTES.get(text[i]) == meant), at)
        kind = "STRING" if meant == "'" else "NAME"
        out.tokens.append(Token((kind,), meant, text[at + 1 : closing], at, closing + 1))
        what = (
            "write strings between ' and '"
            if meant == "'"
            else "write names between \" and \", strings between ' and '"
        )
        out.fault("CQ0101", f"`{c}` is a typographic quote", at, at + 1, help=f"type a straight {meant} ({what})")
        return closing + 1
    if c in LOOKALIKE_SIGNS:
        out.fault("CQ0101", f"`{c}` is not the character it looks like", at, at + 1, help=f"type {LOOKALIKE_SIGNS[c]}")
    elif (problem := _forbidden(c)) is not None or not c.isascii():
        name = unicodedata.name(c, f"character {ord(c):#x}")
        out.fault("CQ0105", problem or f"{name} is only allowed in strings", at, at + 1, help=_character_help(c))
    elif (braces := _BRACES.match(text, at)) is not None:
        help = braces_help(braces.group(), text[:at])
        out.tokens.append(Token(("STRING",), "{", "", at, braces.end()))
        out.fault("CQ0101", "braces are not valid here", at, braces.end(), help=help)
        return braces.end()
    else:
        end = at + 2 if text[at : at + 2] in ("&&", "@@", "$$") else at + 1
        out.fault(
            "CQ0101",
            f"`{text[at:end]}` is not valid here",
            at,
            end,
            help=SIGN_HELP.get(text[at:end], SIGN_HELP.get(c, "")),
        )
        return end
    return at + 1


def _forbidden(c: str) -> str | None:
    """Why `c` is not allowed anywhere in a text, or None."""
    category = unicodedata.category(c)
    name = unicodedata.name(c, f"character {ord(c):#x}")
    if category == "Cs":
        return "half of a surrogate pair: the text is not valid Unicode"
    if category == "Cc" and c not in "\t\n\r\f\v":
        return f"a control character ({ord(c):#04x})"
    if (
        unicodedata.bidirectional(c) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
        or c in "\u200e\u200f\u061c"
    ):
        return f"{name}: it displays the text in a different order from the one in which it is read"
    return None


def _character_help(c: str) -> str:
    if c.isspace() or unicodedata.category(c) in {"Zs", "Zl", "Zp"}:
        return "replace it with a plain space"
    return "delete it" if unicodedata.category(c) in {"Cc", "Cf", "Cs"} else ""


def _check_characters(out: Lexed, text: str, start: int, where: str) -> None:
    """Report characters not allowed inside a string, quoted name or comment."""
    if text.isascii() and text.isprintable():
        return
    for offset, c in enumerate(text):
        if c in " \t\n\r\f\v" or (c.isascii() and c.isprintable()):
            continue
        problem = _forbidden(c)
        if problem is None and where == "a name" and not c.isprintable():
            problem = f"{unicodedata.name(c, 'a character')} is invisible"
        if problem is not None:
            at = start + offset
            out.fault(
                "CQ0105", f"{problem}, inside {where}", at, at + 1, help="delete it, or pass the text as a :parameter"
            )
            return


def _check_word(out: Lexed, text: str, start: int) -> None:
    """Report an unquoted name that is not what it looks like: other forms of letters, or letters of two scripts."""
    if text.isascii():
        return
    if unicodedata.normalize("NFKC", text) != text:
        help = f"type {unicodedata.normalize('NFKC', text)}, or put the name in double quotes"
        out.fault("CQ0105", "this name uses unusual forms of its letters", start, start + len(text), help=help)
        return
    scripts = {unicodedata.name(c, "?").split()[0] for c in text if c.isalpha()}
    if "LATIN" in scripts and scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}:
        odd = next(
            i for i, c in enumerate(text) if not unicodedata.name(c, "LATIN").startswith("LATIN") and c.isalpha()
        )
        message = f"this name mixes scripts: {unicodedata.name(text[odd])} looks like another letter"
        out.fault(
            "CQ0105", message, start + odd, start + odd + 1, help="type it again, or put the name in double quotes"
        )


def _check_nesting(out: Lexed) -> None:
    """Report, once per statement, where nesting is too deep."""
    depth = 0
    for token in out.tokens:
        word = token.word if token.kinds != ("NAME",) else ""
        if word in ("(", "[", "CASE"):
            depth += 1
            if depth == MAX_NESTING + 1:
                message = f"the statement nests deeper than {MAX_NESTING} levels"
                out.fault("CQ0103", message, token.start, token.end, help="move inner queries into WITH or CREATE VIEW")
        elif word in (")", "]", "END"):
            depth = max(0, depth - 1)
        elif word == ";":
            depth = 0


# ------------------------------------------------------------------------------------------ what a word can be


def _classify(tokens: list[Token], position: int, keywords: Mapping[str, str]) -> None:
    """Fill in the kinds of the sign or word at `position` from its neighbours."""
    token = tokens[position]
    if token.kinds == ("SIGN",):
        token.kinds = (keywords.get(_LIKE_NOT_EQUAL.get(token.text, token.text), "BRACKETS"),)
    elif token.kinds == ("WORD",):
        word = token.text.upper()
        before = tokens[position - 1] if position else None
        after = tokens[position + 1 : position + 3]
        foreign = foreign_kinds(tokens, position, RESERVED)
        if foreign is not None:
            token.kinds = foreign
        elif before is not None and before.text == "." and before.end == token.start:
            token.kinds = ("NAME",)  # after a point only a name is possible: Spark's `window.end`
        elif _is_unit_place(tokens, position) and word not in RESERVED:
            token.kinds = ("UNIT",)
        elif word == "ARRAY" and after and after[0].text[0] in "[<":
            token.kinds = ("ARRAY_START" if after[0].text[0] == "[" else "ARRAY_OF", "NAME")
        elif word in ("ROW", "STRUCT") and after and after[0].text == "<":
            token.kinds = ("ROW_OF", "NAME")
        elif word == "EXCEPT" and _leaves_columns_out(before, after):
            token.kinds = ("_STAR_EXCEPT",)
        elif word in _JOINS_OF_OTHERS and _follows(tokens, position, "JOIN"):
            token.kinds = (word,)  # not an alias: `t SEMI JOIN u ON …` must not become an inner join
        elif word in keywords and _may_be_keyword(word, before, after):
            token.kinds = (keywords[word],) if word in RESERVED else (keywords[word], "NAME")
        else:
            token.kinds = ("NAME",)


def _follows(tokens: list[Token], position: int, word: str) -> bool:
    """Whether `word` follows the one at `position`, unless that one is in the place of a relation's name."""
    before = tokens[position - 1].word if position else ""
    return (
        position + 1 < len(tokens) and tokens[position + 1].word == word and before not in ("FROM", "JOIN", ",", "AS")
    )


def _leaves_columns_out(before: Token | None, after: list[Token]) -> bool:
    """Whether EXCEPT is used as in `* EXCEPT (a, b)`: after a star, and not before a query."""
    words = [t.word for t in after]
    return before is not None and before.text == "*" and words[:1] == ["("] and words[1:] not in _QUERY_STARTS


def _may_be_keyword(word: str, before: Token | None, after: list[Token]) -> bool:
    following = {after[0].word, after[0].kinds[0]} if after else set()
    if word == "WINDOW":
        return "CLOSE" in following or (len(after) == 2 and after[1].word == "AS")
    if word == "CONSTRAINT":
        return len(after) == 2 and after[1].word in ("PRIMARY", "CHECK")
    if word == "DEFAULT" and before is not None and before.word in ("=", "(", ","):  # a whole value, or a column
        return not after or not following.isdisjoint((",", ")", ";", "WHERE", "FROM", "ON", "END"))
    if word == "ROWS":
        counts = before is not None and before.kinds[0] in ("NUMBER", "PARAMETER")
        return counts or not following.isdisjoint(ONLY_BEFORE["RANGE"])
    if word in ONLY_AFTER:
        return before is not None and not ONLY_AFTER[word].isdisjoint((before.word, before.kinds[0]))
    return word not in ONLY_BEFORE or not following.isdisjoint(ONLY_BEFORE[word])


def _ends_an_interval(tokens: list[Token], position: int) -> bool:
    """Whether the word at `position` is the unit of `INTERVAL x DAY` or `INTERVAL (x + 1) DAY`."""
    if interval_unit(tokens[position].text) is None or position < 2:
        return False
    at, depth = position - 1, 0
    if tokens[at].text == ")":
        while at > 0:
            depth += (tokens[at].text == ")") - (tokens[at].text == "(")
            at -= 1
            if not depth:
                return tokens[at].word == "INTERVAL"
        return False
    if tokens[at].kinds != ("NAME",):
        return False
    while at > 1 and tokens[at - 1].text == ".":
        at -= 2
    return tokens[at - 1].word == "INTERVAL"


def _is_unit_place(tokens: list[Token], position: int) -> bool:
    """Whether the word at `position` follows INTERVAL 'number', INTERVAL number, or `unit TO`."""
    if _ends_an_interval(tokens, position):
        return True
    before = tokens[max(0, position - 3) : position]
    if len(before) >= 2 and before[-1].word == "TO" and before[-2].kinds == ("UNIT",):
        return True
    if not before or before[-1].kinds not in (("STRING",), ("NUMBER",)):
        return False
    if before[-1].kinds == ("STRING",) and any(c.isalpha() for c in before[-1].value):
        return False
    if ":" in before[-1].value and interval_unit(tokens[position].text) is None:
        return False  # `INTERVAL '01:30:00' AS x`, and without AS
    words = [t.word for t in before[:-1]]
    return words[-1:] == ["INTERVAL"] or words[-2:] == ["INTERVAL", "-"]
