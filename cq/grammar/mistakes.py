"""Explain why a token is not allowed where it is, and suggest a fix.

`explain` tries one recogniser after the other, the most certain first; the last one says what was expected. A
recogniser that guesses (a misspelt keyword, a reserved word used as a name) verifies its guess: with it, the parse gets
further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cq.errors import Diagnostic, Label
from cq.grammar.fault import COMPARING, SyntaxFault, shown
from cq.grammar.foreign_calls import FOREIGN_CALLS
from cq.grammar.foreign_syntax import FOREIGN_SYNTAX
from cq.grammar.lexer import RESERVED
from cq.grammar.unsupported import BODIES, BODY_STATEMENTS, CLAUSES, STATEMENTS, Phrase

MAX_TRIALS_TOKENS = 20_000  # in longer statements no guesses are tried: each costs a parse up to the error
SHOWN = 6

_OPERATORS = frozenset(
    [
        *("PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "CONCAT", "EQUAL", "NOT_EQUAL", "LESSTHAN", "LESS_EQUAL"),
        *("MORETHAN", "GREATER_EQUAL", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "NOT", "OR", "DOUBLE_COLON", "LSQB"),
        *("RLIKE", "REGEXP", "GLOB", "SIMILAR", "MATCHES", "MATCHES_NOT", "MATCHES_ANY_CASE", "MATCHES_NOT_ANY_CASE"),
        *("FITS", "FITS_NOT", "FITS_ANY_CASE", "FITS_NOT_ANY_CASE", "ISNULL", "NOTNULL", "STEP_ARROW", "TEXT_ARROW"),
        *("BIT_AND", "BIT_OR", "BITS_UP", "BITS_DOWN", "WHOLE_QUOTIENT", "AT"),
    ]
)
_SIGNS = frozenset(["+", "-", "*", "/", "//", "%", "||", "&", "|", "<<", ">>", *COMPARING, "AND", "OR"]) - {"NOT"}
_GROUPS = {
    **dict.fromkeys(["JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "ASOF", "NATURAL"], "JOIN"),
    **dict.fromkeys(["UNION", "EXCEPT", "INTERSECT"], "UNION"),
    **dict.fromkeys(["LIMIT", "OFFSET", "FETCH"], "LIMIT"),
    **dict.fromkeys(["ROWS", "RANGE", "GROUPS"], "ROWS"),
    **dict.fromkeys(["WITHIN", "FILTER", "OVER", "IGNORE", "RESPECT"], "OVER"),
}
_WORDS = {
    "NAME": "a name",
    "STRING": "a string",
    "BINARY": "a BINARY",
    "NUMBER": "a number",
    "UNIT": "a unit of time",
    "$END": "`;`",
}
# Shown in this order: what is most likely missing comes first.
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
_CLAUSES = ["SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "EMIT"]
_CLAUSE_NAMES = {"GROUP": "GROUP BY", "ORDER": "ORDER BY"}
_STATEMENT_STARTS = frozenset(["CREATE", "SELECT", "INSERT", "SET", "WITH", "EXPLAIN"])
_VERBS = frozenset(["INSERT", "UPDATE", "DELETE", "SELECT"])
_BEFORE_A_NAME = frozenset(["FROM", "JOIN", "INTO", "AS", "STREAM", "TABLE", "SOURCE", "SINK", "VIEW", "TRIGGER", "."])
_AFTER_A_NAME = frozenset([",", ")", ".", "=", "<>", "<", ">", "<=", ">=", "+", "-", "*", "/", "AS", ";", "IS"])


def explain(fault: SyntaxFault) -> Diagnostic:
    """The finding for a fault."""
    recognisers: Sequence[Callable[[SyntaxFault], Diagnostic | None]] = (
        _unsupported_statement,
        _unsupported_statement_of_a_body,
        _unsupported_in_a_body,
        _unsupported_clause,
        _misspelt,
        _trailing_comma,
        _missing_semicolon,
        _clause_order,
        _star_of_a_path,
        *FOREIGN_CALLS,
        _end_of_an_if,
        _if_without_begin,
        _empty_body,
        _operator_behind_default,
        _never_closed,
        _nothing_opened,
        _all_beside_keys,
        _reserved,
        _string_as_name,
        _signal_of_a_reason,
        _time_of_a_query,
        *FOREIGN_SYNTAX,
        _missing_and,
        _missing_comma,
        _join_without_condition,
    )
    found = (recognise(fault) for recognise in recognisers)
    return next((d for d in found if d is not None), None) or _unexpected(fault)


# --------------------------------------------------------------------------------------------------- recognisers


def _unsupported_statement(fault: SyntaxFault) -> Diagnostic | None:
    if fault.position > fault.first + 3:
        return None
    return next((_refusal(fault, p, fault.first) for p in STATEMENTS if _stands(fault, p, fault.first)), None)


def _unsupported_statement_of_a_body(fault: SyntaxFault) -> Diagnostic | None:
    """A word in the place of a trigger's statement: only there DELETE is expected."""
    if "DELETE" not in fault.expected:
        return None
    standing = (p for p in BODY_STATEMENTS if _stands(fault, p, fault.position))
    return next((_refusal(fault, p, fault.position) for p in standing), None)


def _unsupported_in_a_body(fault: SyntaxFault) -> Diagnostic | None:
    """A clause that statements of a trigger do not have."""
    if "TRIGGER" not in (fault.word(fault.first + 1), fault.word(fault.first + 3)):  # CREATE [OR REPLACE] TRIGGER
        return None
    opened = fault.open_at()
    if opened is not None and opened.word != "BEGIN":
        return None
    verb, depth = "", 0
    for position in range(fault.position - 1, fault.first, -1):
        word = fault.word(position)
        depth += (word == ")") - (word == "(")
        if depth == 0 and word in _VERBS:
            verb = word
            break
    for verbs, phrase in BODIES:
        for start in range(fault.position - len(phrase.words) + 1, fault.position + 1):
            if verb in verbs and _stands(fault, phrase, start):
                return _refusal(fault, phrase, start)
    return None


def _unsupported_clause(fault: SyntaxFault) -> Diagnostic | None:
    for phrase in CLAUSES:
        if phrase.anywhere:
            for start in range(fault.first, fault.position):
                if _stands(fault, phrase, start):
                    return _refusal(fault, phrase, start)
        for start in range(fault.position - len(phrase.words), fault.position + 1):
            if _stands(fault, phrase, start):
                return _refusal(fault, phrase, start)
    return None


def _stands(fault: SyntaxFault, phrase: Phrase, start: int) -> bool:
    return all(fault.word(start + i) == word for i, word in enumerate(phrase.words))


def _refusal(fault: SyntaxFault, phrase: Phrase, start: int) -> Diagnostic:
    tokens = fault.lexed.tokens
    span = fault.span(tokens[start]).to(fault.span(tokens[start + len(phrase.words) - 1]))
    return Diagnostic("CQ0501", phrase.message, span, help=(phrase.help,))


def _misspelt(fault: SyntaxFault) -> Diagnostic | None:
    """The word at fault, or the one before it that was taken for a name, is close to a keyword that would fit."""
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
        import difflib

        for keyword in difflib.get_close_matches(word, keywords, n=3, cutoff=0.7):
            if _leads_on(fault, position, keyword):
                message = f"`{token.text}` is not a keyword"
                return Diagnostic(
                    "CQ0100", message, fault.span(token), "no such keyword", (f"did you mean {keyword}?",)
                )
    return None


def _leads_on(fault: SyntaxFault, position: int, kind: str) -> bool:
    """Whether the parse gets past the fault if the token at `position` had this kind."""
    upto = min(fault.end, max(fault.position + 1, position + 2))
    following = fault.replay({position: kind}, upto)
    return following is not None and (upto < fault.end or "$END" in following)


def _trailing_comma(fault: SyntaxFault) -> Diagnostic | None:
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


def _clause_order(fault: SyntaxFault) -> Diagnostic | None:
    """A clause after one that must follow it, or a second time."""
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
                "CQ0100", f"{name} occurs twice", fault.here, "again", (help,), (Label(earlier, "the first"),)
            )
        order = "the order is SELECT, FROM, WHERE, GROUP BY, HAVING, WINDOW, QUALIFY, ORDER BY, LIMIT, OFFSET, EMIT"
        labels = (Label(earlier, f"{other} comes later"),)
        return Diagnostic("CQ0100", f"{name} must come before {other}", fault.here, "too late", (order,), labels)
    return None


def _missing_semicolon(fault: SyntaxFault) -> Diagnostic | None:
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
        ("end the previous statement with ;",),
        (Label(fault.span(before), "the previous statement ends here"),),
    )


def _end_of_an_if(fault: SyntaxFault) -> Diagnostic | None:
    """`IF … THEN …; END;`: the block ends, but the IF in it does not."""
    if fault.expected != {"IF"} or fault.before is None or fault.before.word != "END":
        return None
    opened = next((t for t in fault.lexed.tokens[fault.position - 1 : fault.first : -1] if t.word == "IF"), None)
    labels = () if opened is None else (Label(fault.span(opened), "opened here"),)
    help = "write END IF; before END"
    return Diagnostic("CQ0100", "IF is not closed", fault.span(fault.before), "END IF is missing", (help,), labels)


def _if_without_begin(fault: SyntaxFault) -> Diagnostic | None:
    """`AFTER INSERT ON s IF … THEN …; END IF;`: without BEGIN, a `;` ends the trigger."""
    if fault.token is not None or "ELSEIF" not in fault.expected:
        return None
    words = range(fault.first, fault.position)
    if any(fault.word(p) == "BEGIN" for p in words):
        return None
    opened = next(p for p in words if fault.word(p) == "IF" and fault.word(p - 1) != "TRIGGER")  # IF NOT EXISTS
    here = fault.span(fault.lexed.tokens[opened])
    help = "write BEGIN ATOMIC IF condition THEN …; END IF; END"
    return Diagnostic("CQ0100", "IF needs BEGIN ATOMIC … END around it", here, "without BEGIN", (help,))


def _empty_body(fault: SyntaxFault) -> Diagnostic | None:
    """`BEGIN ATOMIC END`, `THEN END IF`."""
    token, before = fault.token, fault.before
    if token is None or before is None or "DELETE" not in fault.expected:
        return None
    if token.word not in ("END", "ELSE", "ELSEIF", "ELSIF", ";"):
        return None
    what, way = before.word, "write one, or leave this branch out"
    if what in ("BEGIN", "ATOMIC"):
        what, way = "the body of a trigger", "write one: SELECT new.* gives each event"
    elif what not in ("THEN", "ELSE"):
        return None
    elif token.word == "ELSE":
        way = "write one, or IF (condition) IS NOT TRUE THEN in place of ELSE"
    return Diagnostic("CQ0100", f"{what} needs a statement", fault.here, "nothing before this", (way,))


def _never_closed(fault: SyntaxFault) -> Diagnostic | None:
    """The statement ends, or continues with another clause, while something is open."""
    opened = fault.open_at()
    if opened is None:
        return None
    word = opened.word
    closing, terminal = {"(": (")", "RPAR"), "[": ("]", "RSQB")}.get(word, ("END", "END"))
    token = fault.token
    if token is not None and not (terminal in fault.expected and token.word in RESERVED and token.word != "END"):
        return None
    if token is not None and word == "BEGIN" and fault.word(fault.position - 1) != ";":
        return None  # the statement before it goes on
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


def _nothing_opened(fault: SyntaxFault) -> Diagnostic | None:
    token = fault.token
    if token is None or token.text not in (")", "]") or fault.open_at() is not None:
        return None
    return Diagnostic("CQ0100", f"there is no opening bracket for this {token.text}", fault.here, help=("delete it",))


def _all_beside_keys(fault: SyntaxFault) -> Diagnostic | None:
    """`GROUP BY a, ALL`."""
    if (fault.word(fault.position - 1), fault.word(fault.position)) != (",", "ALL"):
        return None
    by = next((p for p in range(fault.position, fault.first, -1) if fault.word(p) == "BY"), 0)
    clause = f"{fault.word(by - 1)} BY"
    if clause not in ("GROUP BY", "ORDER BY"):
        return None
    help = (f"write {clause} ALL", "or name the others")
    return Diagnostic("CQ0100", f"ALL stands alone in {clause}", fault.here, help=help)


def _reserved(fault: SyntaxFault) -> Diagnostic | None:
    """A reserved word in the place of a name, where the next token shows that it is meant as one."""
    token = fault.token
    if token is None or token.word not in RESERVED or "NAME" not in fault.expected:
        return None
    following = fault.after.word if fault.after is not None else ";"
    named = fault.before is not None and fault.before.word in _BEFORE_A_NAME
    in_definition = "WATERMARK" in fault.expected
    if not (named or in_definition or following in _AFTER_A_NAME) or not _leads_on(fault, fault.position, "NAME"):
        return None
    help = f'put it in double quotes: "{token.text.lower()}"'
    return Diagnostic("CQ0100", f"`{token.text}` is a reserved word", fault.here, "reserved", (help,))


def _string_as_name(fault: SyntaxFault) -> Diagnostic | None:
    token = fault.token
    if token is None or token.kinds != ("STRING",) or "NAME" not in fault.expected:
        return None
    if not _leads_on(fault, fault.position, "NAME") or (fault.before is not None and fault.before.word == "NAME"):
        return None
    help = f'write names in double quotes: "{token.value}"'
    if fault.before is not None and fault.before.text.upper() == "INTO":
        help = f"a file is written by a sink: CREATE SINK name WITH (path = {token.text}); INSERT INTO name"
    return Diagnostic("CQ0100", "expected a name, not a string", fault.here, "a string", (help,))


def _signal_of_a_reason(fault: SyntaxFault) -> Diagnostic | None:
    """`SIGNAL 'reason'`."""
    token, before = fault.token, fault.before
    if token is None or before is None or before.word != "SIGNAL" or token.kinds != ("STRING",):
        return None
    ways = (f"write RAISE {token.text}", f"or SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = {token.text}")
    return Diagnostic("CQ0100", "expected SQLSTATE before the reason of SIGNAL", fault.here, "the reason", ways)


def _operator_behind_default(fault: SyntaxFault) -> Diagnostic | None:
    """`DEFAULT 1 + 2` of a column."""
    token = fault.token
    if token is None or token.word not in _SIGNS:
        return None
    if not {"DEFAULT", "DOUBLE_COLON"} <= fault.expected:  # behind a value, in the definition of a column
        return None
    depth = 0
    for position in range(fault.position - 1, fault.first, -1):
        word = fault.word(position)
        depth += (word in (")", "]")) - (word in ("(", "["))
        if depth < 0 or (depth == 0 and word == ","):
            return None
        if depth == 0 and word == "DEFAULT":
            labels = (Label(fault.span(fault.lexed.tokens[position]), ""),)
            help = "put all of it in parentheses: DEFAULT (1 + 2)"
            cause = "DEFAULT takes one value, or an expression in parentheses"
            return Diagnostic("CQ0100", cause, fault.here, "an operator", (help,), labels)
    return None


def _missing_comma(fault: SyntaxFault) -> Diagnostic | None:
    """Two adjacent elements of a list."""
    token, before = fault.token, fault.before
    if token is None or before is None or "COMMA" not in fault.expected or token.word in RESERVED - {"CASE", "NOT"}:
        return None
    if token.word == "(" and before.kinds[-1] == "NAME" and fault.word(fault.position - 2) not in (*RESERVED, ",", ""):
        first = fault.lexed.tokens[fault.position - 2]  # `SELECT a COUNT(*)`: the call was taken for an alias
        message = f"a comma is missing between `{shown(first)}` and `{shown(before)}`"
        help = "separate the elements of a list with commas"
        return Diagnostic("CQ0100", message, fault.span(before), "put a comma before this", (help,))
    starts = {"NAME", "STRING", "BINARY", "NUMBER", "PARAMETER", "CASE"} | {
        k for k in fault.expression_starts if k != "LPAR"
    }
    if starts.isdisjoint(token.kinds):
        return None
    if fault.span(before).end_line < fault.here.line and token.word in _STATEMENT_STARTS:
        return None
    message = f"a comma is missing between `{shown(before)}` and `{shown(token)}`"
    help = "separate the elements of a list with commas"
    return Diagnostic("CQ0100", message, fault.here, "put a comma before this", (help,))


def _star_of_a_path(fault: SyntaxFault) -> Diagnostic | None:
    around = [fault.word(fault.position + n) for n in (-3, -1, 0)]
    if around != [".", ".", "*"]:
        return None
    help = "name the fields: a.b.c, a.b.d"
    return Diagnostic("CQ0100", "a star follows one name: that of a relation or column", fault.here, help=(help,))


def _time_of_a_query(fault: SyntaxFault) -> Diagnostic | None:
    if (fault.word(fault.position), fault.word(fault.position + 1)) != ("FOR", "SYSTEM_TIME"):
        return None
    help = "make it a view, or a table of WITH: JOIN v FOR SYSTEM_TIME AS OF s.ts AS alias ON …"
    return Diagnostic("CQ0100", "FOR SYSTEM_TIME AS OF belongs after the name of a view", fault.here, help=(help,))


def _missing_and(fault: SyntaxFault) -> Diagnostic | None:
    """Two adjacent conditions in WHERE, HAVING, QUALIFY or ON."""
    token, before, after = fault.token, fault.before, fault.after
    if token is None or before is None or after is None or "OR" not in fault.expected or "COMMA" in fault.expected:
        return None
    if token.kinds[-1] != "NAME" or after.word not in {*COMPARING, "."}:
        return None
    message = f"AND or OR is missing between `{shown(before)}` and `{shown(token)}`"
    return Diagnostic("CQ0100", message, fault.here, "put AND or OR before this", ("join conditions with AND or OR",))


def _join_without_condition(fault: SyntaxFault) -> Diagnostic | None:
    if not {"ON", "USING"} <= fault.expected or "COMMA" in fault.expected:
        return None
    help = "write ON a.k = b.k, or USING (k) where a column has one name in both"
    return Diagnostic("CQ0100", "a join has no condition", fault.here, "expected ON or USING", (help,))


# ----------------------------------------------------------------------------------------------- what was expected


def _unexpected(fault: SyntaxFault) -> Diagnostic:
    wanted = expected_words(fault.expected, fault.expression_starts, fault.keywords)
    label = f"expected {_listed(wanted)}" if wanted else ""
    token = fault.token
    if token is None:
        return Diagnostic("CQ0100", "the statement ends too early", fault.here, label)
    what = {"STRING": "string", "NUMBER": "number", "NAME": "name", "PARAMETER": "parameter"}.get(token.kinds[0], "")
    return Diagnostic("CQ0101", f"unexpected {what} `{shown(token)}`".replace("  ", " "), fault.here, label)


def expected_words(expected: frozenset[str], expression_starts: frozenset[str], keywords: dict[str, str]) -> list[str]:
    """The expected terminals in a reader's words, the likeliest first, at most SHOWN."""
    left = set(expected)
    words: set[str] = set()
    if "CREATE" in left:
        return ["CREATE", "INSERT INTO", "SELECT", "SET", "WITH", "EXPLAIN"]
    if {"NUMBER", "STRING", "LPAR"} <= left:
        left -= expression_starts | {"TABLE", "DESCRIPTOR", "ROWS", "ALL", "ANY", "SOME", "DISTINCT"}
        words.add("an expression")
    if {"NAME", "LATERAL", "UNNEST"} <= left:
        left -= {"NAME", "STRING", "LATERAL", "UNNEST", "TABLE", "LPAR", "VALUES"}
        words.add("a stream, table, view or file")
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
        left -= {"NAME", "AS"}  # an alias is possible after nearly everything, but rarely what is missing
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
