"""Productions of statements to nodes, and the dispatch from a production's name to its method; see
build_expressions.py for how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cq.errors import Span, compile_error
from cq.grammar import ast
from cq.grammar.build_foreign import ForeignBuilder
from cq.grammar.lexer import Lexed, Token

# productions whose value is the one keyword or sign they consist of
KEYWORD_PRODUCTIONS = frozenset(
    [
        "relation_kind",
        "explain_stage",
        "set_quantifier",
        "direction",
        "nulls_place",
        "truth",
        "like_sign",
        "regex_op",
        "some_or_all",
        "trim_side",
        "typed_kind",
        "nulls_rule",
        "frame_unit",
    ]
)
SIGN_PRODUCTIONS = frozenset(["comparator", "concat_op", "additive_op", "term_op", "arrow", "bit_op"])


class Builder(ForeignBuilder):
    """Builds the tree of one statement, bottom-up."""

    def __init__(self, lexed: Lexed) -> None:
        super().__init__(lexed)
        self._methods: dict[str, Callable[..., Any]] = {}

    def build(self, call: str, first: int, last: int, values: list[Any]) -> Any:
        """The value of a production that covers the tokens first…last (none if last < first)."""
        if call in SIGN_PRODUCTIONS:
            return values[0]
        if call in KEYWORD_PRODUCTIONS:
            return values[0].text.upper()
        method = self._methods.get(call)
        if method is None:
            method = self._methods[call] = getattr(self, call)
        return method(self._range(first, last), *values)

    def _range(self, first: int, last: int) -> Span:
        tokens = self._tokens
        if last >= first:
            return self._places.span(tokens[first].start, tokens[last].end)
        here = tokens[first].start if first < len(tokens) else tokens[-1].end if tokens else 0
        return self._places.span(here, here)

    # ---------------------------------------------------------------------------------------------- definitions

    def create_relation(
        self, at: Span, kind: Any, if_not_exists: Any, name: Token, elements: Any, options: Any, encoding: Any
    ) -> ast.CreateRelation:
        place = self._span(name)
        if encoding is not None and not any(o.key == encoding.key for o in options or ()):
            options = (*(options or ()), encoding)
        return ast.CreateRelation(
            kind, name.value, elements or (), options or (), bool(if_not_exists), span=at, name_span=place
        )

    def create_relation_as(
        self, at: Span, kind: str, if_not_exists: Any, name: Token, options: Any, query: Any
    ) -> ast.CreateView:
        if options:
            help = (
                f"leave WITH out; to write the rows, CREATE SINK o WITH (…) and INSERT INTO o SELECT * FROM {name.text}"
            )
            raise compile_error("CQ0501", "a view is written nowhere", options[0].span.to(options[-1].span), help=help)
        return self.create_view(at, if_not_exists, name, None, query)

    def create_sink(self, at: Span, if_not_exists: Any, name: Token, elements: Any, options: Any) -> ast.CreateSink:
        place = self._span(name)
        return ast.CreateSink(name.value, elements or (), options or (), bool(if_not_exists), span=at, name_span=place)

    def create_view(self, at: Span, if_not_exists: Any, name: Token, columns: Any, query: Any) -> ast.CreateView:
        place = self._span(name)
        return ast.CreateView(name.value, query, columns or (), bool(if_not_exists), span=at, name_span=place)

    def if_not_exists(self, at: Span) -> bool:
        return True

    def elements(self, at: Span, *elements: Any) -> tuple[Any, ...]:
        return elements

    def column_def(self, at: Span, name: Token, type: Any, *constraints: tuple[str, Any]) -> ast.ColumnDef:
        given = [c for c in constraints if c[0]]
        for i, (what, _) in enumerate(given):
            if what != "check" and what in [w for w, _ in given[:i]]:
                raise compile_error("CQ0100", f"column {name.text} is given {what.replace('_', ' ')} twice", at)
        single = {what: value for what, value in given if what != "check"}
        checks = tuple(value for what, value in given if what == "check")
        place = self._span(name)
        return ast.ColumnDef(name.value, type, checks=checks, span=at, name_span=place, **single)

    def computed_column(self, at: Span, name: Token, expr: Any) -> ast.ColumnDef:
        return ast.ColumnDef(name.value, None, expr, span=at, name_span=self._span(name))

    def typed_computed_column(self, at: Span, name: Token, type: Any, expr: Any, *_: Any) -> ast.ColumnDef:
        return ast.ColumnDef(name.value, type, expr, span=at, name_span=self._span(name))

    def generated_kind(self, at: Span) -> None:
        return None

    def not_null_constraint(self, at: Span) -> tuple[str, Any]:
        return "not_null", True

    def no_constraint(self, at: Span) -> tuple[str, Any]:
        return "", None

    def primary_key_constraint(self, at: Span) -> tuple[str, Any]:
        return "primary_key", True

    def default_constraint(self, at: Span, value: Any) -> tuple[str, Any]:
        return "default", value

    def check_constraint(self, at: Span, name: str | None, condition: Any) -> tuple[str, Any]:
        return "check", ast.Check(condition, name, span=at)

    def constraint_name(self, at: Span, name: Token) -> str:
        return str(name.value)

    def watermark(self, at: Span, column: tuple[str, Span], bound: Any, idle: Any) -> ast.Watermark:
        return ast.Watermark(column[0], bound, idle, span=at, column_span=column[1])

    def path(self, at: Span, *names: Token) -> tuple[str, Span]:
        return ".".join(name.value for name in names), at

    def primary_key(self, at: Span, _: str | None, columns: Any) -> ast.PrimaryKey:
        return ast.PrimaryKey(columns, span=at)

    def check(self, at: Span, name: str | None, condition: Any) -> ast.Check:
        return ast.Check(condition, name, span=at)

    # -------------------------------------------------------------------------------------------------- options

    def options(self, at: Span, *options: Any) -> tuple[Any, ...]:
        return tuple(o for o in options if o is not None)

    def option(self, at: Span, key: tuple[str, Span], value: Any) -> ast.Option:
        return ast.Option(key[0], value, span=at, key_span=key[1])

    def option_key(self, at: Span, *names: Token) -> tuple[str, Span]:
        return ".".join(n.value for n in names), at

    def quoted_key(self, at: Span, key: Token) -> tuple[str, Span]:
        if not key.value:
            raise compile_error("CQ0104", "the name of an option is empty", at)
        return key.value, at

    def negative(self, at: Span, number: Any) -> ast.Unary:
        return ast.Unary("-", number, span=at)

    def positive(self, at: Span, number: Any) -> Any:
        return number

    def bare_word(self, at: Span, word: Token) -> ast.StringLiteral:
        return ast.StringLiteral(word.value, span=at)

    def option_call(self, at: Span, name: Token, *args: Any) -> ast.Call:
        present = tuple(a for a in args if a is not None)
        return ast.Call(name.value, present, span=at, name_span=self._span(name))

    def set_option(self, at: Span, key: tuple[str, Span], value: Any) -> ast.SetOption:
        return ast.SetOption(key[0], value, span=at, name_span=key[1])

    def explain(self, at: Span, stage: Any, statement: Any) -> ast.Explain:
        return ast.Explain(statement, stage, span=at)

    # ------------------------------------------------------------------------------------------------- triggers

    def create_trigger(
        self, at: Span, if_not_exists: Any, name: Token, relation: Token, row: Any, when: Any, body: Any
    ) -> ast.CreateTrigger:
        return ast.CreateTrigger(
            name.value,
            relation.value,
            body,
            row,
            when,
            bool(if_not_exists),
            span=at,
            name_span=self._span(name),
            relation_span=self._span(relation),
        )

    def referencing(self, at: Span, name: Token) -> str:
        return name.value

    def block(self, at: Span, body: Any) -> Any:
        return body

    def single_statement(self, at: Span, statement: Any) -> tuple[Any, ...]:
        return (statement,)

    def body(self, at: Span, *statements: Any) -> tuple[Any, ...]:
        return statements

    def update(
        self, at: Span, table: Token, alias: Token | None, assignments: Any, relations: Any, where: Any
    ) -> ast.Update:
        name = alias.value if alias is not None else None
        place = self._span(table)
        return ast.Update(table.value, assignments, relations or (), where, name, span=at, table_span=place)

    def delete(self, at: Span, table: Token, alias: Token | None, relations: Any, where: Any) -> ast.Delete:
        name = alias.value if alias is not None else None
        return ast.Delete(table.value, relations or (), where, name, span=at, table_span=self._span(table))

    def using_clause(self, at: Span, *relations: Any) -> tuple[Any, ...]:
        return relations

    def assignments(self, at: Span, *assignments: Any) -> tuple[Any, ...]:
        return assignments

    def assignment(self, at: Span, column: Token, value: Any) -> ast.Assignment:
        return ast.Assignment(column.value, value, span=at, column_span=self._span(column))

    def if_statement(self, at: Span, condition: Any, body: Any, *rest: Any) -> ast.If:
        *branches, otherwise = rest
        first = ast.IfBranch(condition, body, span=condition.span)
        return ast.If((first, *branches), otherwise or (), span=at)

    def elsif(self, at: Span, condition: Any, body: Any) -> ast.IfBranch:
        return ast.IfBranch(condition, body, span=at)

    def signal(self, at: Span, state: Token, message: Any) -> ast.Signal:
        if len(state.value) != 5 or not state.value.isalnum():
            help = "45000 is the state for errors of your own"
            raise compile_error("CQ0104", "an SQLSTATE has five letters or digits", self._span(state), help=help)
        return ast.Signal(state.value, message, span=at)

    def raise_statement(self, at: Span, message: Any) -> ast.Signal:
        return ast.Signal("45000", message, span=at)

    def insert(self, at: Span, target: Token, columns: Any, query: Any, conflict: Any) -> ast.Insert:
        names, spans = columns or ((), ())
        return ast.Insert(
            target.value, query, names, conflict, span=at, target_span=self._span(target), column_spans=spans
        )

    def insert_columns(self, at: Span, *names: Token) -> tuple[tuple[str, ...], tuple[Span, ...]]:
        return tuple(n.value for n in names), tuple(self._span(n) for n in names)

    def on_conflict(self, at: Span, columns: Any, assignments: Any, where: Any) -> ast.OnConflict:
        return ast.OnConflict(columns or (), assignments, where, span=at)

    def on_conflict_nothing(self, at: Span, columns: Any) -> ast.OnConflict:
        return ast.OnConflict(columns or (), span=at)
