"""Text to trees: `parse` returns the Script of a file or raises all its errors at once.

The grammar is cq.lark; lark turns it into LALR tables, which are stored in tables.json. While that file is current,
lark is not imported. `python -m cq.grammar.parser` rewrites it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from cq.errors import CompileError, SourceText, compile_error
from cq.grammar import ast
from cq.grammar.build import Builder
from cq.grammar.fault import SyntaxFault
from cq.grammar.lexer import MAX_FINDINGS, Lexed, Token, tokenize
from cq.grammar.mistakes import explain
from cq.grammar.tables import END, LazyTable, Machine, Production, Tables, fingerprint, from_json, to_json

MAX_DEPTH = 128  # levels of a tree: plain recursion over it, five frames a level, stays below Python's 1,000 frames
HERE = Path(__file__).parent
INNER = ("IF", "WHILE", "FOR", "LOOP", "REPEAT")  # the END of these, loops of other systems, closes no BEGIN
START_SYMBOLS = ("statement", "expression")


def parse(source: SourceText) -> ast.Script:
    """The statements of a file, its description and its comments. Raises one CompileError with all syntax errors."""
    lexed = tokenize(source.text, tables().keywords)
    findings = [finding for _, finding in lexed.faults]
    statements: list[ast.Statement] = []
    ranges = [] if lexed.fatal else _statements(lexed.tokens)[0]
    while ranges and len(findings) < MAX_FINDINGS:
        first, end = ranges.pop(0)
        if not _has_fault(lexed, first, end):
            try:
                made = _parse_range(lexed, first, end, "statement")
                statements.extend(made if isinstance(made, tuple) else (made,))
                continue
            except CompileError as error:
                findings.extend(error.diagnostics)
        if _is_trigger(lexed.tokens, first):
            del ranges[: _rest_of_a_body(lexed.tokens, ranges)]
    if findings:
        findings.sort(key=lambda d: (d.span.line, d.span.column))
        raise CompileError(*(d.at(source) for d in findings))
    whole = lexed.places.span(0, len(source.text))
    comments = tuple(lexed.comments)
    first_token = lexed.places.span(lexed.tokens[0].start, lexed.tokens[0].end).line if lexed.tokens else None
    return ast.Script(tuple(statements), _description(comments, first_token), comments, span=whole)


def parse_expression(text: str) -> ast.Expr:
    """The tree of one expression. Raises CompileError."""
    source = SourceText("<text>", text)
    lexed = tokenize(text, tables().keywords)
    if lexed.faults:
        raise CompileError(*(finding.at(source) for _, finding in lexed.faults))
    try:
        expression: ast.Expr = _parse_range(lexed, 0, len(lexed.tokens), "expression")
    except CompileError as error:
        raise error.at(source) from None
    return expression


# ---------------------------------------------------------------------------------------------------- statements


def ends_a_statement(text: str) -> bool:
    """Whether a text ends with the `;` of a statement; one in a quote, a comment, a trigger's body or an open statement
    set does not count."""
    tokens = tokenize(text, tables().keywords).tokens
    if not tokens or tokens[-1].text != ";":
        return False
    ranges, in_a_set = _statements(tokens)
    return not in_a_set and all(end < len(tokens) for _, end in ranges)


def _statements(tokens: Sequence[Token]) -> tuple[list[tuple[int, int]], bool]:
    """(first token, end) of each statement, without its `;`, and whether a statement set has no END yet. A trigger with
    BEGIN ends after its END."""
    ranges, nesting = list[tuple[int, int]](), _Nesting(tokens)
    first, in_a_set = 0, False
    while first < len(tokens):
        opened = _statement_set(tokens, first)
        in_a_set, first = in_a_set or opened > 0, first + opened
        end = _statement_end(tokens, first, nesting)
        closes = in_a_set and [t.word for t in tokens[first:end]] == ["END"]
        in_a_set = in_a_set and not closes
        if end > first and not closes:
            ranges.append((first, end))
        first = end + 1
    return ranges, in_a_set


def _statement_set(tokens: Sequence[Token], first: int) -> int:
    """How many tokens open a Flink statement set, whose INSERTs are ordinary statements. END; closes it."""
    words = [t.word for t in tokens[first : first + 4]]
    for opening in (["EXECUTE", "STATEMENT", "SET", "BEGIN"], ["BEGIN", "STATEMENT", "SET", ";"]):
        if words == opening:
            return len(opening)
    return 0


class _Nesting:
    """The depth of each token in BEGIN and CASE; counted once, as a text may open many and close none."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens

    @cached_property
    def before(self) -> list[int]:
        """How many more BEGIN and CASE than END precede each token, and are in the whole text."""
        depths = [0]
        words = [token.word for token in self._tokens]
        for word, following in zip(words, [*words[1:], ""], strict=True):
            depths.append(depths[-1] + (word in ("BEGIN", "CASE")) - (word == "END" and following not in INNER))
        return depths

    @cached_property
    def lowest(self) -> list[int]:
        """The least depth of any `;` from each token on."""
        found, low = self.before.copy(), len(self._tokens)
        for i in reversed(range(len(self._tokens))):
            if self._tokens[i].text == ";":
                low = min(low, found[i])
            found[i] = low
        return found


def _statement_end(tokens: Sequence[Token], first: int, nesting: _Nesting) -> int:
    plain = next((i for i in range(first, len(tokens)) if tokens[i].text == ";"), len(tokens))
    if not _is_trigger(tokens, first):
        return plain
    depth = nesting.before[first]
    if nesting.lowest[first] <= depth:
        return next(i for i in range(plain, len(tokens)) if tokens[i].text == ";" and nesting.before[i] <= depth)
    # BEGIN without END: the trigger takes everything that could belong to it
    for i in range(plain, len(tokens) - 1):
        if tokens[i].text == ";" and tokens[i + 1].word in ("CREATE", "EXPLAIN"):
            return i
    return len(tokens)


def _is_trigger(tokens: Sequence[Token], first: int) -> bool:
    words = [t.word for t in tokens[first : first + 4]]
    return words[:1] == ["CREATE"] and "TRIGGER" in words


def _rest_of_a_body(tokens: Sequence[Token], ranges: Sequence[tuple[int, int]]) -> int:
    """How many of the statements after a faulty trigger belong to its body: up to an END that nothing else opens.

    A user who closed an IF with END, or left out BEGIN, gets that error, and not one for each following statement.
    """
    belong = 0
    for number, (first, _) in enumerate(ranges, 1):
        if tokens[first].word in ("CREATE", "EXPLAIN"):
            break
        if tokens[first].word == "END":
            belong = number
    return belong


def _has_fault(lexed: Lexed, first: int, end: int) -> bool:
    """Whether the lexer has already refused something in this statement: one report is enough."""
    start = lexed.tokens[first].start
    stop = lexed.tokens[end].start if end < len(lexed.tokens) else float("inf")
    return any(start <= offset < stop for offset, _ in lexed.faults)


def _parse_range(lexed: Lexed, first: int, end: int, start: str) -> Any:
    """The tree of the tokens [first, end)."""
    builder = Builder(lexed)
    machine = Machine(tables(), start, builder.build)
    for position in range(first, end):
        token = lexed.tokens[position]
        kind = token.kinds[0] if len(token.kinds) == 1 else machine.choose(token.kinds)
        if kind is None or not machine.feed(kind, token, position):
            raise _explained(lexed, first, position, end, start)
        if machine.height > MAX_DEPTH:
            raise _too_high(lexed, token)
    if not machine.feed(END, None, end):
        raise _explained(lexed, first, end, end, start)
    if machine.height > MAX_DEPTH:
        raise _too_high(lexed, lexed.tokens[end - 1])
    builder.finish()
    return machine.result()


def _too_high(lexed: Lexed, token: Token) -> CompileError:
    span = lexed.places.span(token.start, token.end)
    message = f"the statement nests deeper than {MAX_DEPTH} levels, chains of operators included"
    help = "put parentheses around parts of a long chain, or move parts into WITH or CREATE VIEW"
    return compile_error("CQ0103", message, span, help=help)


def _explained(lexed: Lexed, first: int, position: int, end: int, start: str) -> CompileError:
    """The error for the token at `position`, which is not allowed there."""

    def replay(replaced: dict[int, str], upto: int) -> frozenset[str] | None:
        machine = Machine(tables(), start, lambda *_: None)
        for i in range(first, upto):
            kind = replaced.get(i) or machine.choose(lexed.tokens[i].kinds)
            if kind is None or not machine.feed(kind, None, i):
                return None
        return frozenset(machine.expected())

    expected = replay({}, position)
    assert expected is not None, "the tokens before a fault have been accepted once"
    starts = frozenset(Machine(tables(), "expression", lambda *_: None).expected())
    return CompileError(explain(SyntaxFault(lexed, first, position, end, expected, starts, replay, tables().keywords)))


def _description(comments: Sequence[ast.Comment], first_line: int | None) -> str:
    """The first block of comments: those before the first statement with no empty line between them."""
    lines: list[str] = []
    last_line = None
    for comment in comments:
        if first_line is not None and comment.span.line >= first_line:
            break
        if last_line is not None and comment.span.line > last_line + 1:
            break
        last_line = comment.span.end_line
        text = comment.text.removeprefix("/*").removesuffix("*/") if comment.text.startswith("/*") else comment.text[2:]
        lines.extend(line.strip().lstrip("*").strip() for line in text.split("\n"))
    return "\n".join(lines).strip()


# -------------------------------------------------------------------------------------------------------- tables


@cache
def tables() -> Tables:
    """The tables of cq.lark: from the container if it is current, else built now."""
    grammar = _text("cq.lark")
    stored = from_json(_text("tables.json"), fingerprint(grammar))
    return stored if stored is not None else build_tables(grammar)


def current_container() -> str:
    """The required content of tables.json."""
    grammar = _text("cq.lark")
    return to_json(build_tables(grammar), fingerprint(grammar))


def _text(name: str) -> str:
    file = HERE / name
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def build_tables(grammar: str) -> Tables:
    """The tables lark computes from a grammar, with states numbered in the order they are reached."""
    import lark
    from lark.lexer import PatternStr
    from lark.parsers.lalr_analysis import Shift

    generator = lark.Lark(grammar, parser="lalr", lexer="basic", start=list(START_SYMBOLS), maybe_placeholders=True)
    table = generator.parser.parser._parse_table
    numbers: dict[int, int] = {}
    waiting = [table.start_states[s] for s in START_SYMBOLS]
    for state in waiting:  # grows while it is walked
        if state not in numbers:
            numbers[state] = len(numbers)
            row = table.states[state]
            waiting.extend(row[symbol][1] for symbol in sorted(row) if row[symbol][0] is Shift and symbol != END)
    productions = sorted(
        {arg for row in table.states.values() for action, arg in row.values() if action is not Shift},
        key=lambda r: (r.origin.name, r.order, [s.name for s in r.expansion]),
    )
    rule_numbers = {production: i for i, production in enumerate(productions)}
    origins = {production.origin.name for production in productions}
    actions: list[dict[str, int]] = []
    default: list[int | None] = []
    goto: list[dict[str, int]] = []
    for state in numbers:
        row = table.states[state]
        reductions = {rule_numbers[arg] for action, arg in row.values() if action is not Shift}
        only = (
            reductions.pop()
            if len(reductions) == 1 and all(action is not Shift for action, _ in row.values())
            else None
        )
        default.append(only)
        actions.append(
            {
                symbol: numbers.get(arg, 0) if action is Shift else ~rule_numbers[arg]
                for symbol, (action, arg) in sorted(row.items())
                if symbol not in origins and only is None
            }
        )
        goto.append({s: numbers[arg] for s, (_, arg) in sorted(row.items()) if s in origins})
    rules = tuple(_rule(production) for production in productions)
    return Tables(
        rules=LazyTable(len(rules), rules.__getitem__),
        renames=LazyTable(len(rules), lambda n: rules[n].renames),
        actions=LazyTable(len(actions), actions.__getitem__),
        default=tuple(default),
        goto=LazyTable(len(goto), goto.__getitem__),
        start={s: numbers[table.start_states[s]] for s in START_SYMBOLS},
        accept={s: numbers[table.end_states[s]] for s in START_SYMBOLS},
        keywords={t.pattern.value: t.name for t in generator.terminals if isinstance(t.pattern, PatternStr)},
    )


def _rule(production: Any) -> Production:
    """A production of lark's in our form: which values it passes on, and to what."""
    symbols, options = production.expansion, production.options
    # lark marks the places where an absent [optional] leaves a None: True per None, False per symbol
    nones_before = [0]
    for is_none in options.empty_indices or [False] * len(symbols):
        if is_none:
            nones_before[-1] += 1
        else:
            nones_before.append(0)
    keep: list[tuple[int, bool, int]] = []
    nones = 0
    for i, symbol in enumerate(symbols):
        nones += nones_before[i]
        if options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            keep.append((i, not symbol.is_term and symbol.name.startswith("_"), nones))
            nones = 0
    origin = production.origin.name
    call = production.alias or ("" if origin.startswith("_") else origin)
    single = bool(options.expand1) and not production.alias
    return Production(origin, len(symbols), tuple(keep), nones + nones_before[len(symbols)], call, single)


if __name__ == "__main__":
    (HERE / "tables.json").write_text(current_container(), encoding="utf-8")
