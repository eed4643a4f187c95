"""Why a token cannot stand where it stands, in words, with a way out.

`explain` asks one recogniser after the other, the most certain first; the last one says what was expected. A recogniser
that guesses (a misspelt keyword, a reserved word used as a name) proves its guess: with it, the parse gets further.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cq.errors import Diagnostic, Label, Span
from cq.grammar.lexer import RESERVED, Lexed, Token
from cq.grammar.unsupported import CLAUSES, STATEMENTS, Phrase

MAX_TRIALS_TOKENS = 20_000  # in longer statements guesses are not tried: each costs a parse up to the error
SHOWN = 6

_OPERATORS = frozenset(
    [
        *("PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "CONCAT", "EQUAL", "NOT_EQUAL", "LESSTHAN", "LESS_EQUAL"),
        *("MORETHAN", "GREATER_EQUAL", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "NOT", "OR", "DOUBLE_COLON", "LSQB"),
    ]
)
_GROUPS = {
    **dict.fromkeys(["JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "ASOF"], "JOIN"),
    **dict.fromkeys(["UNION", "EXCEPT", "INTERSECT"], "UNION"),
    **dict.fromkeys(["LIMIT", "OFFSET", "FETCH"], "LIMIT"),
    **dict.fromkeys(["ROWS", "RANGE", "GROUPS"], "ROWS"),
    **dict.fromkeys(["FILTER", "OVER", "IGNORE", "RESPECT"], "OVER"),
}
_WORDS = {"NAME": "a name", "STRING": "a string", "NUMBER": "a number", "UNIT": "a unit of time", "$END": "`;`"}
# Shown in this order: what is most probably missing comes first.
_ORDER = [
    "AND",
    "`,`",
    "`)`",
    "an expression",
    "a type",
    "a column definition",
    "a name",
    "`;`",
    "an operator",
    "AS",
    "FROM",
]
_COMPARING = frozenset(["=", "<>", "!=", "<", "<=", ">", ">=", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "NOT"])
_CLAUSES = ["SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "EMIT"]
_CLAUSE_NAMES = {"GROUP": "GROUP BY", "ORDER": "ORDER BY"}
_STATEMENT_STARTS = frozenset(["CREATE", "SELECT", "INSERT", "SET", "WITH", "EXPLAIN"])
_BEFORE_A_NAME = frozenset(["FROM", "JOIN", "INTO", "AS", "STREAM", "TABLE", "SOURCE", "SINK", "VIEW", "TRIGGER", "."])
_AFTER_A_NAME = frozenset([",", ")", ".", "=", "<>", "<", ">", "<=", ">=", "+", "-", "*", "/", "AS", ";", "IS"])


@dataclass(frozen=True, slots=True)
class Fault:
    """A statement that cannot be parsed on. tokens [first, end) are the statement, `position` the one at fault (`end`
    when it stops too early).  expected: the terminals that could stand there.  replay(replaced, upto): the terminals
    that could stand at `upto` if some tokens were of other kinds, or None if the parse stops before."""

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
        """The token at fault, or the place behind the last one."""
        if self.token is not None:
            return self.span(self.token)
        last = self.lexed.tokens[self.end - 1].end if self.end > self.first else 0
        return self.lexed.places.span(last, last)

    def word(self, position: int) -> str:
        return self.lexed.tokens[position].word if self.first <= position < self.end else ""


def explain(fault: Fault) -> Diagnostic:
    """The finding for a fault."""
    recognisers: Sequence[Callable[[Fault], Diagnostic | None]] = (
        _unsupported_statement,
        _unsupported_clause,
        _misspelt,
        _trailing_comma,
        _missing_semicolon,
        _clause_order,
        _three_parts,
        _cast_by_another_name,
        _never_closed,
        _nothing_opened,
        _reserved,
        _string_as_name,
        _limit_with_comma,
        _time_of_a_query,
        _turned_comparison,
        _half_a_condition,
        _null_without_is,
        _row_of_values,
        _watermark_without_for,
        _name_of_a_catalog,
        _interval_of_an_expression,
        _equal_by_is,
        _query_without_parentheses,
        _sink_from_a_view,
        _comment_of_another_language,
        _word_of_others,
        _list_of_others,
        _comment_in_a_comment,
        _missing_and,
        _missing_comma,
        _join_without_condition,
    )
    found = (recognise(fault) for recognise in recognisers)
    return next((d for d in found if d is not None), None) or _unexpected(fault)


# --------------------------------------------------------------------------------------------------- recognisers


def _unsupported_statement(fault: Fault) -> Diagnostic | None:
    if fault.position > fault.first + 3:
        return None
    return next((_refusal(fault, p, fault.first) for p in STATEMENTS if _stands(fault, p, fault.first)), None)


def _unsupported_clause(fault: Fault) -> Diagnostic | None:
    for phrase in CLAUSES:
        if phrase.anywhere:
            for start in range(fault.first, fault.position):
                if _stands(fault, phrase, start):
                    return _refusal(fault, phrase, start)
        for start in range(fault.position - len(phrase.words), fault.position + 1):
            if _stands(fault, phrase, start):
                return _refusal(fault, phrase, start)
    return None


def _stands(fault: Fault, phrase: Phrase, start: int) -> bool:
    return all(fault.word(start + i) == word for i, word in enumerate(phrase.words))


def _refusal(fault: Fault, phrase: Phrase, start: int) -> Diagnostic:
    tokens = fault.lexed.tokens
    span = fault.span(tokens[start]).to(fault.span(tokens[start + len(phrase.words) - 1]))
    return Diagnostic("CQ0501", phrase.message, span, help=(phrase.help,))


def _misspelt(fault: Fault) -> Diagnostic | None:
    """The word at fault, or the one before it that was taken for a name, is nearly a keyword that would fit."""
    if fault.position - fault.first > MAX_TRIALS_TOKENS:
        return None
    for position in (fault.position, fault.position - 1):
        if not fault.first <= position < fault.end:
            continue
        token = fault.lexed.tokens[position]
        word = token.text.upper()
        if token.kinds[-1] != "NAME" or token.word != word or word in fault.keywords or not word.isalpha():
            continue
        possible = fault.expected if position == fault.position else fault.replay({}, position) or frozenset()
        words = {terminal for text, terminal in fault.keywords.items() if text.isalpha()}  # CONCAT is ||, no word
        keywords = sorted(possible & words)
        for keyword in difflib.get_close_matches(word, keywords, n=3, cutoff=0.7):
            if _leads_on(fault, position, keyword):
                message = f"`{token.text}` is not a keyword"
                return Diagnostic(
                    "CQ0100", message, fault.span(token), "no such keyword", (f"did you mean {keyword}?",)
                )
    return None


def _leads_on(fault: Fault, position: int, kind: str) -> bool:
    """Whether the parse gets past the fault if the token at `position` were of this kind."""
    upto = min(fault.end, max(fault.position + 1, position + 2))
    following = fault.replay({position: kind}, upto)
    return following is not None and (upto < fault.end or "$END" in following)


def _trailing_comma(fault: Fault) -> Diagnostic | None:
    comma, token = fault.before, fault.token
    if comma is None or comma.text != "," or "NAME" not in fault.expected:
        return None
    if token is not None and not (token.text in (")", "]") or token.word in (*_CLAUSES, "END", "THEN", "UNION")):
        return None
    names_follow = "WATERMARK" in fault.expected or (fault.after is not None and fault.after.text in (",", ".", "="))
    if token is not None and token.text != ")" and names_follow:
        return None  # `SELECT a, order, b`: a reserved word, not the end of the list
    what = f"before `{token.text.upper()}`" if token is not None else "at the end of the statement"
    return Diagnostic("CQ0100", f"a comma stands {what}", fault.span(comma), "nothing follows", ("delete the comma",))


def _clause_order(fault: Fault) -> Diagnostic | None:
    """A clause after one that has to stand behind it, or a second time."""
    token = fault.token
    if token is None or token.word not in _CLAUSES:
        return None
    rank = _CLAUSES.index(token.word)
    depth = 0
    for position in range(fault.position - 1, fault.first - 1, -1):
        word = fault.word(position)
        depth += (word == ")") - (word == "(")
        if depth < 0 or (depth == 0 and word == "SELECT"):
            return None
        if depth or word not in _CLAUSES or _CLAUSES.index(word) < rank:
            continue
        earlier = fault.span(fault.lexed.tokens[position])
        name, other = (_CLAUSE_NAMES.get(w, w) for w in (token.word, word))
        if word == token.word:
            help = "join the conditions with AND" if word in ("WHERE", "HAVING", "QUALIFY") else f"keep one {name}"
            return Diagnostic(
                "CQ0100", f"{name} stands twice", fault.here, "again", (help,), (Label(earlier, "the first"),)
            )
        order = "the order is SELECT, FROM, WHERE, GROUP BY, HAVING, WINDOW, QUALIFY, ORDER BY, LIMIT, OFFSET, EMIT"
        labels = (Label(earlier, f"{other} comes later"),)
        return Diagnostic("CQ0100", f"{name} must stand before {other}", fault.here, "too late", (order,), labels)
    return None


def _missing_semicolon(fault: Fault) -> Diagnostic | None:
    token, before = fault.token, fault.before
    if token is None or before is None or token.word not in _STATEMENT_STARTS or "$END" not in fault.expected:
        return None
    if fault.span(before).end_line == fault.here.line:
        return None
    return Diagnostic(
        "CQ0100",
        "a `;` is missing between two statements",
        fault.here,
        "a statement begins here",
        ("end the one before with ;",),
        (Label(fault.span(before), "the one before ends here"),),
    )


def _never_closed(fault: Fault) -> Diagnostic | None:
    """The statement ends, or goes on with another clause, while something is open."""
    opened = _open_at(fault)
    if opened is None:
        return None
    word = opened.word
    closing, terminal = {"(": (")", "RPAR"), "[": ("]", "RSQB")}.get(word, ("END", "END"))
    token = fault.token
    if token is not None and not (terminal in fault.expected and token.word in RESERVED and token.word != "END"):
        return None
    if token is None and terminal not in fault.expected and word in "([" and not fault.expected & {"NAME", "NUMBER"}:
        return None
    where = f"before {token.word}" if token is not None else "when the statement ends"
    return Diagnostic(
        "CQ0100",
        f"`{word}` is not closed {where}",
        fault.here,
        f"{closing} is missing",
        (f"add {closing}",),
        (Label(fault.span(opened), "opened here"),),
    )


def _open_at(fault: Fault) -> Token | None:
    """The innermost thing that is open at the fault."""
    closes = {")": ("(",), "]": ("[",), "END": ("CASE", "BEGIN")}
    opened: list[Token] = []
    for position in range(fault.first, fault.position):
        word = fault.word(position)
        if word in ("(", "[", "CASE", "BEGIN"):
            opened.append(fault.lexed.tokens[position])
        elif word in closes and fault.word(position + 1) != "IF" and opened and opened[-1].word in closes[word]:
            opened.pop()
    return opened[-1] if opened else None


def _nothing_opened(fault: Fault) -> Diagnostic | None:
    token = fault.token
    if token is None or token.text not in (")", "]") or _open_at(fault) is not None:
        return None
    return Diagnostic("CQ0100", f"there is no opening bracket for this {token.text}", fault.here, help=("delete it",))


def _reserved(fault: Fault) -> Diagnostic | None:
    """A reserved word where a name belongs, and what follows says that it is meant as one."""
    token = fault.token
    if token is None or token.word not in RESERVED or "NAME" not in fault.expected:
        return None
    following = fault.after.word if fault.after is not None else ";"
    named = fault.before is not None and fault.before.word in _BEFORE_A_NAME
    in_definition = "WATERMARK" in fault.expected
    if not (named or in_definition or following in _AFTER_A_NAME) or not _leads_on(fault, fault.position, "NAME"):
        return None
    help = f'put it in double quotes: "{token.text.lower()}"'
    return Diagnostic("CQ0100", f"`{token.text}` is a reserved word", fault.here, "cannot be a name as it is", (help,))


def _string_as_name(fault: Fault) -> Diagnostic | None:
    token = fault.token
    if token is None or token.kinds != ("STRING",) or "NAME" not in fault.expected:
        return None
    if not _leads_on(fault, fault.position, "NAME") or (fault.before is not None and fault.before.word == "NAME"):
        return None
    if fault.before is not None and fault.before.word in ("FROM", "JOIN"):
        help = f"CREATE TABLE t WITH (connector = 'file', path = {token.text}), then FROM t"
        return Diagnostic("CQ0100", "a file is not read by its path", fault.here, help=(help,))
    help = f'names stand in double quotes: "{token.value}"'
    return Diagnostic("CQ0100", "a string stands where a name belongs", fault.here, "a string", (help,))


def _limit_with_comma(fault: Fault) -> Diagnostic | None:
    if fault.word(fault.position) != "," or fault.word(fault.position - 2) != "LIMIT" or fault.after is None:
        return None
    assert fault.before is not None
    help = f"write LIMIT {fault.after.text} OFFSET {fault.before.text}"
    return Diagnostic("CQ0100", "LIMIT takes one number", fault.here, help=(help,))


def _missing_comma(fault: Fault) -> Diagnostic | None:
    """Two elements of a list side by side."""
    token, before = fault.token, fault.before
    if token is None or before is None or "COMMA" not in fault.expected or token.word in RESERVED - {"CASE", "NOT"}:
        return None
    if token.word == "(" and before.kinds[-1] == "NAME" and fault.word(fault.position - 2) not in (*RESERVED, ",", ""):
        first = fault.lexed.tokens[fault.position - 2]  # `SELECT a COUNT(*)`: the call was taken for an alias
        message = f"a comma is missing between `{_shown(first)}` and `{_shown(before)}`"
        help = "elements of a list are separated by commas"
        return Diagnostic("CQ0100", message, fault.span(before), "put a comma before this", (help,))
    starts = {"NAME", "STRING", "NUMBER", "PARAMETER", "CASE"} | {k for k in fault.expression_starts if k != "LPAR"}
    if starts.isdisjoint(token.kinds):
        return None
    if fault.span(before).end_line < fault.here.line and token.word in _STATEMENT_STARTS:
        return None
    message = f"a comma is missing between `{_shown(before)}` and `{_shown(token)}`"
    help = "elements of a list are separated by commas"
    return Diagnostic("CQ0100", message, fault.here, "put a comma before this", (help,))


def _three_parts(fault: Fault) -> Diagnostic | None:
    if fault.word(fault.position) != "." or fault.word(fault.position - 2) != ".":
        return None
    help = "name the relation with AS and write alias.column"
    return Diagnostic("CQ0100", "a column name has at most two parts", fault.here, "one too many", (help,))


def _time_of_a_query(fault: Fault) -> Diagnostic | None:
    if (fault.word(fault.position), fault.word(fault.position + 1)) != ("FOR", "SYSTEM_TIME"):
        return None
    help = "make it a view, or a table of WITH: JOIN v FOR SYSTEM_TIME AS OF s.ts AS alias ON …"
    return Diagnostic("CQ0100", "FOR SYSTEM_TIME AS OF stands behind the name of a view", fault.here, help=(help,))


def _turned_comparison(fault: Fault) -> Diagnostic | None:
    """`=<`, `=>` and `><`: the two signs the other way round, or another system's."""
    token, before = fault.token, fault.before
    if token is None or before is None:
        return None
    if token.text == "=>" and "GREATER_EQUAL" in fault.expected:
        return Diagnostic("CQ0101", "`=>` does not compare", fault.here, help=("write >=",))
    meant = {"=<": "<=", "=>": ">=", "><": "<>"}.get(before.text + token.text)
    if meant is None or before.end != token.start:
        return None
    here = fault.span(before).to(fault.here)
    return Diagnostic("CQ0101", f"`{before.text}{token.text}` does not compare", here, help=(f"write {meant}",))


def _half_a_condition(fault: Fault) -> Diagnostic | None:
    """`a > 1 AND < 5`, `WHERE NOT IN (1)`: a comparison without its left side."""
    token, before = fault.token, fault.before
    if token is None or before is None or token.word not in _COMPARING:
        return None
    if before.word not in ("AND", "OR", "NOT", "WHERE", "HAVING", "QUALIFY", "ON") or "NAME" not in fault.expected:
        return None
    label = "what is compared stands before this"
    return Diagnostic("CQ0100", "a condition has no left side", fault.here, label, ("say it again: x > 1 AND x < 5",))


def _null_without_is(fault: Fault) -> Diagnostic | None:
    """`x NOT NULL`."""
    if (fault.word(fault.position - 1), fault.word(fault.position)) != ("NOT", "NULL") or "IN" not in fault.expected:
        return None
    assert fault.before is not None
    here = fault.span(fault.before).to(fault.here)
    return Diagnostic("CQ0100", "NOT NULL is no condition", here, "IS is missing", ("write IS NOT NULL",))


def _row_of_values(fault: Fault) -> Diagnostic | None:
    """`(a, b) IN …`, `(a, b) = (1, 2)`: a comma in parentheses that hold one expression."""
    opened = _open_at(fault)
    if fault.word(fault.position) != "," or opened is None or opened.word != "(" or "RPAR" not in fault.expected:
        return None
    help = "name the values one by one: a, b in a list, a = 1 AND b = 2 in a condition"
    return Diagnostic("CQ0501", "a row of values is not supported", fault.span(opened), help=(help,))


def _cast_by_another_name(fault: Fault) -> Diagnostic | None:
    """`SAFE_CAST(x AS T)`, `STRUCT(x AS y)`."""
    opened = _open_at(fault)
    if fault.word(fault.position) != "AS" or opened is None or opened.word != "(" or "RPAR" not in fault.expected:
        return None
    name = fault.lexed.tokens[max(fault.first, fault.lexed.tokens.index(opened) - 1)]
    if name.kinds[-1] != "NAME" or name.end != opened.start:
        return None
    safe = name.word in ("SAFE_CAST", "TRY_CONVERT")
    help = (
        "write TRY_CAST(x AS T)" if safe else "CAST(x AS T) and TRY_CAST(x AS T) do; give fields a column of their own"
    )
    return Diagnostic(
        "CQ0100", f"{name.word} takes no AS", fault.here, labels=(Label(fault.span(name), ""),), help=(help,)
    )


def _watermark_without_for(fault: Fault) -> Diagnostic | None:
    if fault.word(fault.first) != "CREATE":
        return None
    if fault.word(fault.position) == "WATERMARK" and fault.word(fault.position - 1) == ")":
        help = "move it into the brackets, behind the last column and a comma"
        return Diagnostic("CQ0100", "WATERMARK stands among the columns", fault.here, "too late", (help,))
    for position in (fault.position - 1, fault.position - 2):
        if fault.word(position) == "WATERMARK" and fault.word(position - 1) in (",", "("):
            column = fault.lexed.tokens[position + 1].text
            help = f"write WATERMARK FOR {column} AS {column} - INTERVAL '5' SECOND"
            return Diagnostic(
                "CQ0100", "WATERMARK needs FOR", fault.span(fault.lexed.tokens[position]), "FOR is missing", (help,)
            )
    return None


def _name_of_a_catalog(fault: Fault) -> Diagnostic | None:
    """`FROM catalog.database.t`."""
    if fault.word(fault.position) != "." or fault.word(fault.position - 2) not in ("FROM", "JOIN", "INTO", "TABLE"):
        return None
    assert fault.before is not None
    last = fault.position + 1
    while fault.word(last + 1) == ".":
        last += 2
    help = f"there is no catalog: write {fault.lexed.tokens[last].text}" if last < fault.end else "write the name alone"
    message = "the name of a stream, view or sink has one part"
    return Diagnostic("CQ0100", message, fault.here, "one too many", (help,), (Label(fault.span(fault.before), ""),))


def _interval_of_an_expression(fault: Fault) -> Diagnostic | None:
    """`INTERVAL x SECOND`."""
    if fault.word(fault.position - 1) != "INTERVAL" or "NUMBER" not in fault.expected or fault.token is None:
        return None
    help = "multiply: x * INTERVAL '1' SECOND"
    return Diagnostic("CQ0100", "INTERVAL takes a constant", fault.here, "not a number or a string", (help,))


def _equal_by_is(fault: Fault) -> Diagnostic | None:
    """`x IS 5`."""
    token = fault.token
    if token is None or fault.word(fault.position - 1) not in ("IS", "NOT") or "UNKNOWN" not in fault.expected:
        return None
    if token.kinds[-1] not in ("STRING", "NUMBER", "NAME"):
        return None
    help = "write = or <>, or IS [NOT] DISTINCT FROM where NULL is a value"
    return Diagnostic("CQ0100", "IS does not compare with a value", fault.here, help=(help,))


def _query_without_parentheses(fault: Fault) -> Diagnostic | None:
    """`WITH a AS SELECT …`."""
    if fault.word(fault.position) != "SELECT" or fault.expected != {"LPAR"}:
        return None
    message = "a query stands here without parentheses"
    return Diagnostic("CQ0100", message, fault.here, "( is missing", ("put it in parentheses: (SELECT …)",))


def _sink_from_a_view(fault: Fault) -> Diagnostic | None:
    """`CREATE SINK o FROM v`, `CREATE SINK o AS SELECT …`."""
    if fault.word(fault.first + 1) != "SINK" or fault.word(fault.position) not in ("FROM", "AS"):
        return None
    help = "write CREATE SINK o WITH (…), then INSERT INTO o SELECT * FROM v"
    return Diagnostic("CQ0100", "what goes into a sink is said by INSERT INTO", fault.here, help=(help,))


def _comment_of_another_language(fault: Fault) -> Diagnostic | None:
    """`// text`: the fault is at the first sign, or, behind an expression, at the second."""
    for first in (fault.position, fault.position - 1):
        if (fault.word(first), fault.word(first + 1)) == ("/", "/"):
            signs = fault.lexed.tokens[first : first + 2]
            here = fault.span(signs[0]).to(fault.span(signs[1]))
            help = ("a comment begins with --", "/ of integers is their integer quotient")
            return Diagnostic("CQ0101", "`//` means nothing here", here, help=help)
    return None


def _word_of_others(fault: Fault) -> Diagnostic | None:
    """`a VARCHAR KEY`, `SELECT a INTO t`."""
    word = fault.word(fault.position)
    if word == "KEY" and "PRIMARY" in fault.expected:
        help = "leave it out: a key is given where it is used"
        return Diagnostic("CQ0501", "KEY is not a constraint of a stream", fault.here, help=(help,))
    if word == "INTO" and "FROM" in fault.expected:
        return Diagnostic("CQ0501", "SELECT INTO is not supported", fault.here, help=("write INSERT INTO o SELECT …",))
    return None


def _list_of_others(fault: Fault) -> Diagnostic | None:
    """`[1, 2]` and `IN ()`."""
    word, before = fault.word(fault.position), fault.word(fault.position - 1)
    if word == "[" and "NUMBER" in fault.expected:
        help = "SPLIT('a,b', ',') makes an array of text"
        return Diagnostic("CQ0501", "an array constant is not supported yet", fault.here, help=(help,))
    if (word, before, fault.word(fault.position - 2)) == (")", "(", "IN"):
        return Diagnostic("CQ0100", "IN takes at least one value", fault.here, "none", ("x IN () is FALSE: say that",))
    return None


def _comment_in_a_comment(fault: Fault) -> Diagnostic | None:
    """`/* a /* b */ c */`: what stands behind the first end is read as the query."""
    here = (fault.here.line, fault.here.column)
    for comment in fault.lexed.comments:
        if "/*" in comment.text[2:] and (comment.span.line, comment.span.column) < here:
            label = Label(comment.span, "ends at its first */")
            help = "put -- before each line instead"
            return Diagnostic("CQ0100", "comments do not nest", fault.here, "no comment", (help,), (label,))
    return None


def _missing_and(fault: Fault) -> Diagnostic | None:
    """Two conditions side by side in WHERE, HAVING, QUALIFY or ON."""
    token, before, after = fault.token, fault.before, fault.after
    if token is None or before is None or after is None or "OR" not in fault.expected or "COMMA" in fault.expected:
        return None
    if token.kinds[-1] != "NAME" or after.word not in {*_COMPARING, "."}:
        return None
    message = f"AND or OR is missing between `{_shown(before)}` and `{_shown(token)}`"
    return Diagnostic("CQ0100", message, fault.here, "put AND or OR before this", ("conditions are joined by words",))


def _join_without_condition(fault: Fault) -> Diagnostic | None:
    if not {"ON", "USING"} <= fault.expected or "COMMA" in fault.expected:
        return None
    help = "write ON a.key = b.key or USING (key); a join of everything with everything is CROSS JOIN"
    return Diagnostic("CQ0100", "a join has no condition", fault.here, "expected ON or USING", (help,))


# ----------------------------------------------------------------------------------------------- what was expected


def _unexpected(fault: Fault) -> Diagnostic:
    wanted = expected_words(fault.expected, fault.expression_starts, fault.keywords)
    label = f"expected {_listed(wanted)}" if wanted else ""
    token = fault.token
    if token is None:
        return Diagnostic("CQ0100", "the statement ends too early", fault.here, label)
    what = {"STRING": "string", "NUMBER": "number", "NAME": "name", "PARAMETER": "parameter"}.get(token.kinds[0], "")
    return Diagnostic("CQ0101", f"unexpected {what} `{_shown(token)}`".replace("  ", " "), fault.here, label)


def _shown(token: Token) -> str:
    text = token.text.split("\n")[0]
    return text if len(text) <= 40 else text[:37] + "…"


def expected_words(expected: frozenset[str], expression_starts: frozenset[str], keywords: dict[str, str]) -> list[str]:
    """The expected terminals as a reader would say them, the likeliest first, at most SHOWN."""
    left = set(expected)
    words: set[str] = set()
    if "CREATE" in left:
        return ["CREATE", "INSERT INTO", "SELECT", "SET", "WITH", "EXPLAIN"]
    if {"NUMBER", "STRING", "LPAR"} <= left:
        left -= expression_starts | {"TABLE", "DESCRIPTOR", "ROWS", "ALL", "DISTINCT"}
        words.add("an expression")
    if {"NAME", "LATERAL", "UNNEST"} <= left:
        left -= {"NAME", "LATERAL", "UNNEST", "TABLE", "LPAR"}
        words.add("a stream, table or view")
    if "ARRAY_OF" in left:
        left -= {"ARRAY_OF", "NAME", "INTERVAL"}
        words.add("a type")
    if "WATERMARK" in left:
        left -= {"WATERMARK", "PRIMARY", "CHECK", "CONSTRAINT", "NAME"}
        words.add("a column definition")
    if "PLUS" in left:
        left -= _OPERATORS | ({"AND"} if "OR" in expected else set())  # AND alone is the second half of BETWEEN
        words.add("an operator")
    if "EQUAL" in left:
        left.discard("DOT")
    if {"NAME", "AS"} <= left and len(left) > 3:
        left -= {"NAME", "AS"}  # an alias is possible after nearly everything, and nearly never what is missing
    texts = {terminal: text for text, terminal in keywords.items()}
    for terminal in left:
        text = _WORDS.get(terminal) or _GROUPS.get(terminal) or texts.get(terminal, "")
        if text:
            words.add(text if text[0].isalnum() or text[0] == "`" else f"`{text}`")
    ranked = sorted(words, key=lambda w: (_rank(w), w))
    return ranked if len(ranked) <= SHOWN else [*ranked[: SHOWN - 1], "…"]


def _rank(word: str) -> int:
    order = [*_ORDER, *_CLAUSES, "JOIN", "UNION"]
    return order.index(word) if word in order else len(order)


def _listed(words: Sequence[str]) -> str:
    if words[-1] == "…":
        return ", ".join(words[:-1]) + ", …"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
