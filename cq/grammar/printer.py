"""Trees as canonical text: `cq fmt`. One clause a line, upper-case keywords, two spaces a level, comments kept.

Laws: parse(print_script(s)) == s; format_source(format_source(t)) == format_source(t); no comment is lost.

A statement becomes rows. A row knows the stretch of the source it was made from, so comments find their place: one
after code stays after the preceding row, one alone on its line (or inside what is now one row) gets its own row. A list
is broken over several rows when it is too wide or has a comment inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cq.errors import NOWHERE, SourceText, Span
from cq.grammar import ast, inline
from cq.grammar.parser import parse
from cq.records import dataclass

WIDTH = 100
MAX_ROUNDS = 8  # of 3,000 random files with comments anywhere, 8 needed one more round, none two
INDENT = "  "

Place = tuple[int, int]  # line, column


def format_source(source: SourceText) -> str:
    """The canonical text of a file: what `cq fmt` writes. Formatting it again changes nothing. Raises CompileError."""
    text = print_script(parse(source))
    for _ in range(MAX_ROUNDS):
        again = print_script(parse(SourceText(source.name, text)))
        if again == text:
            return text
        text = again
    return text


def print_script(script: ast.Script) -> str:
    """The canonical text of a script, with a final line end unless there is nothing to print.

    A comment inside a list breaks the list; if the comment has to move out of it, the next printing joins the list
    again. That is why `format_source` prints until nothing changes.
    """
    comments = list(script.comments)
    blocks: list[str] = []
    for i, statement in enumerate(script.statements):
        following = script.statements[i + 1] if i + 1 < len(script.statements) else None
        leading, inside = _split(_take_comments(comments, statement, following), statement)
        rows = StatementRows(inside).statement(statement)
        rows[-1].text += ";"
        lines, left_over = _with_comments(rows, inside)
        comments[:0] = left_over
        block = _leading(leading, statement) + lines
        settings = bool(blocks) and all(b.lstrip("\n").startswith("SET ") for b in (blocks[-1], block))
        blocks.append(("" if settings or not blocks else "\n") + block)
    if comments:
        blocks.append(("\n" if blocks else "") + _comment_lines(comments))
    return "".join(blocks)


def print_expr(node: ast.Expr) -> str:
    """The canonical text of an expression, on one line."""
    return inline.expr(node)


# ------------------------------------------------------------------------------------------------------- comments


def _start(span: Span) -> Place:
    return span.line, span.column


def _end(span: Span) -> Place:
    return span.end_line, span.end_column


def _take_comments(comments: list[ast.Comment], node: ast.Node, following: ast.Node | None) -> list[ast.Comment]:
    """Remove and return the comments of `node`: those before its end, and those after it on its last line."""
    taken: list[ast.Comment] = []
    while comments:
        place = _start(comments[0].span)
        if following is not None and place > _start(following.span):
            break
        if place > _end(node.span) and (
            comments[0].alone or (taken and taken[-1].alone and place[0] > node.span.end_line)
        ):
            break
        taken.append(comments.pop(0))
    return taken


def _split(comments: Sequence[ast.Comment], node: ast.Node) -> tuple[list[ast.Comment], list[ast.Comment]]:
    """Those before `node`, and those inside or after it."""
    start = _start(node.span)
    return [c for c in comments if _start(c.span) < start], [c for c in comments if _start(c.span) >= start]


def _leading(comments: Sequence[ast.Comment], node: ast.Node) -> str:
    text = _comment_lines(comments)
    return text + "\n" if comments and node.span.line > comments[-1].span.end_line + 1 else text


def _comment_lines(comments: Sequence[ast.Comment]) -> str:
    """Comments on lines of their own; an empty line between two stays."""
    out = ""
    for i, comment in enumerate(comments):
        apart = i > 0 and comment.span.line > comments[i - 1].span.end_line + 1
        out += ("\n" if apart else "") + comment.text + "\n"
    return out


def _with_comments(rows: list[PrintedLine], comments: Sequence[ast.Comment]) -> tuple[str, list[ast.Comment]]:
    """The rows with their comments, and the comments that come after all of them."""
    lines: list[str] = []
    waiting = list(comments)
    free = False  # the last line is a row without a comment
    for row in rows:
        while waiting and row.end is not None and _start(waiting[0].span) < row.end:
            comment = waiting.pop(0)
            inside = row.start is not None and _start(comment.span) >= row.start
            if free and not (comment.alone or inside or "\n" in comment.text):
                lines[-1] += f" {comment.text}"
            else:
                lines.append(INDENT * row.indent + comment.text)
            free = False
        lines.append(INDENT * row.indent + row.text)
        free = True
    if waiting and not waiting[0].alone and "\n" not in waiting[0].text:
        lines[-1] += f" {waiting.pop(0).text}"
    return "\n".join(lines) + "\n", waiting


# ---------------------------------------------------------------------------------------------------------- rows


@dataclass(slots=True)
class PrintedLine:
    """A future line. start, end: the stretch of the source it stands for; None if it stands for no node."""

    indent: int
    text: str
    start: Place | None = None
    end: Place | None = None


@dataclass(slots=True)
class ListItem:
    """One element of a list that may be broken over rows."""

    text: str
    span: Span


def _items(nodes: Iterable[ast.Node], texts: Iterable[str]) -> list[ListItem]:
    return [ListItem(text, node.span) for node, text in zip(nodes, texts, strict=True)]


def _joined(items: Iterable[ListItem]) -> str:
    return ", ".join(i.text for i in items)


class StatementRows:
    """The rows of one statement. comments: those inside and after it."""

    def __init__(self, comments: Sequence[ast.Comment]) -> None:
        self._comments = comments
        self._rows: list[PrintedLine] = []
        self._reached: Place = (0, 0)  # the end of the source covered by the rows so far

    def statement(self, node: ast.Statement) -> list[PrintedLine]:
        self._reached = _start(node.span)
        self._statement(node, 0)
        return self._rows

    def _row(self, indent: int, text: str, span: Span = NOWHERE) -> None:
        if span.line == 0:
            self._rows.append(PrintedLine(indent, text))
        else:
            self._rows.append(PrintedLine(indent, text, _start(span), _end(span)))
            self._reached = max(self._reached, _end(span))

    def _fits(self, indent: int, text: str, start: Span, end: Span) -> bool:
        """Whether `text`, made from everything between two nodes, can be one row: narrow, and no comment inside."""
        if len(INDENT * indent + text) > WIDTH:
            return False
        inside = [c for c in self._comments if self._reached <= _start(c.span) < _end(end)]
        if inside and self._goes_behind_last_row(inside[0]) and _start(inside[0].span) < _start(start):
            del inside[0]
        return not inside

    def _goes_behind_last_row(self, comment: ast.Comment) -> bool:
        one_line = bool(self._rows) and not comment.alone and "\n" not in comment.text
        return one_line and comment.span.line == self._reached[0]

    def _list(
        self, indent: int, opening: str, items: Sequence[ListItem], closing: str = "", last: Span = NOWHERE
    ) -> None:
        """A list on one row if it fits or has one item, else one row each. last: where its `)` is."""
        text = opening + _joined(items) + closing
        whole = items[0].span.to(items[-1].span)
        one_row = self._fits(indent, text, items[0].span, last if closing else items[-1].span)
        if one_row or (len(items) == 1 and not closing):
            self._row(indent, text, whole)
            return
        self._broken(indent, opening, items)
        if closing:
            self._row(indent, closing, last)

    def _broken(self, indent: int, opening: str, items: Sequence[ListItem]) -> None:
        self._row(indent, opening.rstrip(" "))
        for item in items:
            self._row(indent + 1, item.text + ("," if item is not items[-1] else ""), item.span)

    def _condition(self, indent: int, opening: str, node: ast.Expr, closing: str = "") -> None:
        """A condition; a chain of AND that does not fit has a row for each operand."""
        text = f"{opening}{inline.expr(node)}{closing}"
        if not isinstance(node, ast.Logical) or node.op == "OR" or self._fits(indent, text, node.span, node.span):
            self._row(indent, text, node.span)
            return
        operands = [inline.expr(o, inline.NOT) for o in node.operands]
        self._row(indent, opening + operands[0], node.operands[0].span)
        for operand, shown in zip(node.operands[1:], operands[1:], strict=True):
            self._row(indent + 1, f"AND {shown}{closing if operand is node.operands[-1] else ''}", operand.span)

    # ---------------------------------------------------------------------------------------------- statements

    def _statement(self, node: ast.Statement, indent: int) -> None:
        match node:
            case ast.CreateRelation(kind, name, elements, options, if_not_exists):
                self._relation(
                    f"CREATE {kind} {_guard(if_not_exists)}{inline.name(name)}", elements, options, node.span
                )
            case ast.CreateSink(name, elements, options, if_not_exists):
                self._relation(f"CREATE SINK {_guard(if_not_exists)}{inline.name(name)}", elements, options, node.span)
            case ast.CreateView(name, inner, columns, if_not_exists):
                listed = f" {inline.names(columns)}" if columns else ""
                self._row(indent, f"CREATE VIEW {_guard(if_not_exists)}{inline.name(name)}{listed} AS")
                self._query(inner, indent + 1)
            case ast.CreateTrigger():
                self._trigger(node)
            case ast.Insert():
                self._insert(node, indent)
            case ast.SetOption(name, value):
                self._row(indent, f"SET {inline.option_key(name)} = {inline.expr(value)}", node.span)
            case ast.Explain(inner, stage):
                self._row(indent, f"EXPLAIN {stage}" if stage else "EXPLAIN")
                self._statement(inner, indent)
            case ast.Query():
                self._query(node, indent)

    def _relation(
        self, head: str, elements: Sequence[ast.TableElement], options: Sequence[ast.Option], span: Span
    ) -> None:
        closing = _last_character(span)
        given = _items(options, (f"{inline.option_key(o.key)} = {inline.expr(o.value)}" for o in options))
        declared = _items(elements, (_element(e) for e in elements))
        text = head + "".join(
            [f" ({_joined(declared)})"] * bool(declared) + [f" WITH ({_joined(given)})"] * bool(given)
        )
        if self._fits(0, text, span, span):
            self._row(0, text, span)
            return
        opening = head
        alone = f"{head} ({_joined(declared)})"
        if given and len(declared) == 1 and self._fits(0, alone, declared[0].span, declared[0].span):
            self._row(0, alone, declared[0].span)
            self._list(0, "WITH (", given, ")", closing)
            return
        if declared:
            self._broken(0, f"{head} (", declared)
            opening = ")"
        if given:
            self._list(0, f"{opening} WITH (", given, ")", closing)
        else:
            self._row(0, opening, closing)

    def _trigger(self, node: ast.CreateTrigger) -> None:
        name = f"{_guard(node.if_not_exists)}{inline.name(node.name)}"
        head = [f"CREATE TRIGGER {name} AFTER INSERT ON {inline.name(node.relation)}"]
        if node.row is not None:
            head.append(f"REFERENCING NEW ROW AS {inline.name(node.row)}")
        head.append("FOR EACH ROW")
        if node.when is not None:
            self._row(0, " ".join(head))
            self._row(0, f"WHEN ({inline.expr(node.when)})", node.when.span)
        else:
            self._row(0, " ".join(head), node.relation_span)
        self._row(0, "BEGIN ATOMIC")
        self._body(node.body, 1)
        self._row(0, "END", _last_character(node.span, len("END")))

    def _body(self, statements: Sequence[ast.TriggerStatement], indent: int) -> None:
        for statement in statements:
            self._trigger_statement(statement, indent)
            self._rows[-1].text += ";"

    def _trigger_statement(self, node: ast.TriggerStatement, indent: int) -> None:
        match node:
            case ast.Insert():
                self._insert(node, indent)
            case ast.Update():
                self._update(node, indent)
            case ast.Delete():
                self._delete(node, indent)
            case ast.If(branches, otherwise):
                for branch in branches:
                    word = "IF" if branch is branches[0] else "ELSIF"
                    self._row(indent, f"{word} {inline.expr(branch.condition)} THEN", branch.condition.span)
                    self._body(branch.body, indent + 1)
                if otherwise:
                    self._row(indent, "ELSE")
                    self._body(otherwise, indent + 1)
                self._row(indent, "END IF")
            case ast.Signal(state, message):
                text = f" SET MESSAGE_TEXT = {inline.expr(message)}" if message is not None else ""
                self._row(indent, f"SIGNAL SQLSTATE {inline.string(state)}{text}", node.span)
            case ast.Query():
                self._query(node, indent)

    def _update(self, node: ast.Update, indent: int) -> None:
        head = f"UPDATE {inline.name(node.table)}{f' AS {inline.name(node.alias)}' if node.alias else ''}"
        parts = [f"SET {', '.join(_assignment(a) for a in node.assignments)}"]
        parts.extend([f"FROM {', '.join(inline.relation(r) for r in node.relations)}"] if node.relations else [])
        parts.extend([f"WHERE {inline.expr(node.where)}"] if node.where is not None else [])
        text = " ".join([head, *parts])
        if self._fits(indent, text, node.span, node.span):
            self._row(indent, text, node.span)
            return
        self._row(indent, head, node.table_span)
        self._list(indent + 1, "SET ", _items(node.assignments, (_assignment(a) for a in node.assignments)))
        if node.relations:
            self._relations(node.relations, indent + 1)
        if node.where is not None:
            self._condition(indent + 1, "WHERE ", node.where)

    def _delete(self, node: ast.Delete, indent: int) -> None:
        parts = [f"DELETE FROM {inline.name(node.table)}{f' AS {inline.name(node.alias)}' if node.alias else ''}"]
        parts.extend([f"USING {', '.join(inline.relation(r) for r in node.relations)}"] if node.relations else [])
        parts.extend([f"WHERE {inline.expr(node.where)}"] if node.where is not None else [])
        if not node.relations or self._fits(indent, " ".join(parts), node.span, node.span):
            self._row(indent, " ".join(parts), node.span)
            return
        self._row(indent, parts[0], node.table_span)
        self._relations(node.relations, indent + 1, "USING")
        if node.where is not None:
            self._condition(indent + 1, "WHERE ", node.where)

    def _insert(self, node: ast.Insert, indent: int) -> None:
        listed = f" {inline.names(node.columns)}" if node.columns else ""
        head = f"INSERT INTO {inline.name(node.target)}{listed}"
        conflict = _conflict(node.conflict) if node.conflict is not None else ""
        if isinstance(node.query.body, ast.Values):
            text = f"{head} {inline.query(node.query)}{' ' if conflict else ''}{conflict}"
            if self._fits(indent, text, node.span, node.span):
                self._row(indent, text, node.span)
                return
        self._row(indent, head, node.target_span)
        self._query(node.query, indent + 1)
        if node.conflict is not None:
            self._row(indent, conflict, node.conflict.span)

    # ------------------------------------------------------------------------------------------------- queries

    def _query(self, node: ast.Query, indent: int) -> None:
        for cte in node.ctes:
            word = "WITH " if cte is node.ctes[0] else ""
            self._row(indent, f"{word}{inline.cte_head(cte)} (", cte.name_span)
            self._query(cte.query, indent + 1)
            self._row(indent, ")," if cte is not node.ctes[-1] else ")")
        self._query_body(node.body, indent)
        if node.order_by:
            self._list(indent, "ORDER BY ", _items(node.order_by, (inline.order_item(i) for i in node.order_by)))
        if node.limit is not None:
            self._row(indent, f"LIMIT {inline.expr(node.limit)}", node.limit.span)
        if node.offset is not None:
            self._row(indent, f"OFFSET {inline.offset(node.offset)}", node.offset.span)
        if node.emit is not None:
            self._row(indent, inline.emit(node.emit), node.emit.span)

    def _query_body(self, node: ast.QueryBody, indent: int) -> None:
        match node:
            case ast.Query():
                self._row(indent, "(")
                self._query(node, indent + 1)
                self._row(indent, ")")
            case ast.Values(rows):
                self._list(indent, "VALUES ", _items(rows, (f"({inline.exprs(r.values)})" for r in rows)))
            case ast.SetOperation(left=left, right=right):
                self._side(node, left, indent, False)
                self._row(indent, inline.set_words(node))
                self._side(node, right, indent, True)
            case ast.Select():
                self._select(node, indent)

    def _side(self, node: ast.SetOperation, side: ast.QueryBody, indent: int, is_right: bool) -> None:
        if inline.needs_parentheses(node, side, is_right):
            self._row(indent, "(")
            self._query_body(side, indent + 1)
            self._row(indent, ")")
        else:
            self._query_body(side, indent)

    def _select(self, node: ast.Select, indent: int) -> None:
        items = _items(node.items, (inline.select_item(i) for i in node.items))
        self._list(indent, f"{inline.select_words(node)} ", items)
        if node.relations:
            self._relations(node.relations, indent)
        if node.where is not None:
            self._condition(indent, "WHERE ", node.where)
        if node.group_by:
            self._list(indent, "GROUP BY ", _items(node.group_by, (inline.group_item(g) for g in node.group_by)))
        if node.group_all:
            self._row(indent, "GROUP BY ALL")
        if node.having is not None:
            self._condition(indent, "HAVING ", node.having)
        if node.windows:
            self._list(indent, "WINDOW ", _items(node.windows, (inline.named_window(w) for w in node.windows)))
        if node.qualify is not None:
            self._condition(indent, "QUALIFY ", node.qualify)

    def _relations(self, relations: Sequence[ast.Relation], indent: int, word: str = "FROM") -> None:
        """FROM, or USING, with its comma list. Joins and long derived tables always get their own rows."""
        texts = [inline.relation(r) for r in relations]
        if len(relations) == 1:
            self._one_relation(f"{word} ", relations[0], indent, "")
            return
        plain = not any(isinstance(r, ast.Join) for r in relations)
        if plain and self._fits(indent, f"{word} {', '.join(texts)}", relations[0].span, relations[-1].span):
            self._row(indent, f"{word} {', '.join(texts)}", relations[0].span.to(relations[-1].span))
            return
        self._row(indent, word)
        for relation in relations:
            self._one_relation("", relation, indent + 1, "," if relation is not relations[-1] else "")

    def _one_relation(self, opening: str, node: ast.Relation, indent: int, closing: str) -> None:
        """A relation; each join is below what it joins to, in a comma list one level deeper."""
        match node:
            case ast.Join(left=left):
                self._one_relation(opening, left, indent, "")
                self._join(node, indent if opening else indent + 1, closing)
            case ast.DerivedTable():
                text = f"{opening}{inline.relation(node)}{closing}"
                if self._fits(indent, text, node.span, node.span):
                    self._row(indent, text, node.span)
                else:
                    self._derived(opening, node, indent, closing, node.span)
            case _:
                self._row(indent, f"{opening}{inline.relation(node)}{closing}", node.span)

    def _join(self, node: ast.Join, indent: int, closing: str) -> None:
        right = node.right
        words, condition = f"{inline.join_words(node)} ", inline.join_condition(node) + closing
        text = words + inline.join_right(node) + condition
        fits = self._fits(indent, text, right.span, node.span)
        if isinstance(right, ast.DerivedTable) and not fits:
            self._derived(words, right, indent, condition, node.span)
        elif node.on is not None and not fits:
            self._row(indent, f"{words}{inline.join_right(node)}{inline.join_reach(node)}", right.span)
            self._condition(indent + 1, "ON ", node.on, closing)
        else:
            self._row(indent, text, right.span.to(node.span))

    def _derived(self, opening: str, node: ast.DerivedTable, indent: int, closing: str, whole: Span) -> None:
        self._row(indent, f"{opening}{'LATERAL ' if node.lateral else ''}(")
        self._query(node.query, indent + 1)
        end = node.alias_span if node.alias is not None else _last_character(node.span)
        self._row(indent, f"){inline.alias(node)}{closing}", end.to(whole) if whole != NOWHERE else NOWHERE)


def _last_character(span: Span, length: int = 1) -> Span:
    """Where the closing bracket (or word) of a node is."""
    return Span(span.end_line, max(1, span.end_column - length), span.end_line, span.end_column)


def _guard(if_not_exists: bool) -> str:
    return "IF NOT EXISTS " if if_not_exists else ""


def _assignment(node: ast.Assignment) -> str:
    return f"{inline.name(node.column)} = {inline.expr(node.value)}"


def _conflict(node: ast.OnConflict) -> str:
    target = f"ON CONFLICT{f' {inline.names(node.columns)}' if node.columns else ''}"
    if not node.assignments:
        return f"{target} DO NOTHING"
    where = f" WHERE {inline.expr(node.where)}" if node.where is not None else ""
    return f"{target} DO UPDATE SET {', '.join(_assignment(a) for a in node.assignments)}{where}"


def _element(node: ast.TableElement) -> str:
    match node:
        case ast.PrimaryKey(columns):
            return f"PRIMARY KEY {inline.names(columns)}"
        case ast.Check():
            return _check(node)
        case ast.Watermark(column, bound, idle):
            delay = f" AS {inline.expr(bound)}" if bound is not None else ""
            timeout = f" IDLE TIMEOUT {inline.interval(idle.parts)}" if idle is not None else ""
            return f"WATERMARK FOR {inline.name(column)}{delay}{timeout}"
        case ast.ColumnDef():
            return _column(node)


def _column(node: ast.ColumnDef) -> str:
    words = [inline.name(node.name)]
    words.extend([inline.type_name(node.type)] if node.type is not None else [])
    words.extend([f"AS {inline.expr(node.computed)}"] if node.computed is not None else [])
    words.extend(["PRIMARY KEY"] if node.primary_key else [])
    words.extend(["NOT NULL"] if node.not_null else [])
    words.extend([f"DEFAULT {inline.expr(node.default, inline.UNARY)}"] if node.default is not None else [])
    words.extend(map(_check, node.checks))
    return " ".join(words)


def _check(node: ast.Check) -> str:
    name = f"CONSTRAINT {inline.name(node.name)} " if node.name is not None else ""
    return f"{name}CHECK ({inline.expr(node.condition)})"
