"""Nodes as one line of canonical text: expressions, types, relations and whole queries, with the fewest parentheses.

Law: parsing the text gives an equal node. printer.py breaks statements over several lines and calls this for the parts
that fit on one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cq.grammar import ast
from cq.grammar.comparing import row_and_rows
from cq.grammar.lexer import NILADIC, RESERVED

# How tightly an expression binds; the levels of cq.lark.
OR, AND, NOT, IS, COMPARISON, PREDICATE, CONCAT, ADDITIVE, TERM, UNARY, POSTFIX, PRIMARY = range(12)

_BINARY_LEVEL = {
    "IS DISTINCT FROM": (IS, IS, PREDICATE),
    "IS NOT DISTINCT FROM": (IS, IS, PREDICATE),
    **dict.fromkeys(["=", "<>", "<", "<=", ">", ">="], (COMPARISON, COMPARISON, PREDICATE)),
    **dict.fromkeys(["->", "->>"], (POSTFIX, POSTFIX, PRIMARY)),
    "||": (CONCAT, CONCAT, ADDITIVE),
    **dict.fromkeys(["+", "-"], (ADDITIVE, ADDITIVE, TERM)),
    **dict.fromkeys(["*", "/", "%"], (TERM, TERM, UNARY)),
}

# Names that mean something else without quotes although they are not reserved.
_AMBIGUOUS = frozenset(["ARRAY", "CONSTRAINT", "DEFAULT", "IF"])
# Functions with their own syntax: a plain call with such a name needs quotes.
_SPECIAL_CALLS = frozenset(["CAST", "TRY_CAST", "EXTRACT", "DESCRIPTOR"])
# Functions with both: quotes only if the call has features that the special syntax lacks.
_HALF_SPECIAL_CALLS = frozenset(["SUBSTRING", "TRIM"])
# Reserved words that are functions before a parenthesis.
_CALLABLE = frozenset(["LEFT", "RIGHT", "FULL", "INNER", "CROSS"])
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)


def string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name in quotes. A quoted name cannot contain a line end, and the lexer produces none."""
    return '"' + name.replace('"', '""') + '"'


def is_plain(name: str) -> bool:
    """Whether a name works without quotes wherever names are allowed."""
    upper = name.upper()
    return _PLAIN.fullmatch(name) is not None and not (upper in RESERVED or upper in NILADIC or upper in _AMBIGUOUS)


def name(value: str) -> str:
    return value if is_plain(value) else quoted(value)


def names(values: Iterable[str]) -> str:
    return "(" + ", ".join(name(v) for v in values) + ")"


def option_key(key: str) -> str:
    return key if all(is_plain(part) for part in key.split(".")) else string(key)


def type_name(node: ast.TypeName) -> str:
    match node:
        case ast.ArrayType(element):
            return f"{type_name(element)} ARRAY"
        case ast.RowType(fields):
            return f"ROW({', '.join(f'{name(f.name)} {type_name(f.type)}' for f in fields)})"
        case ast.SimpleType(text, params):
            plain = _PLAIN.fullmatch(text.lower()) is not None and (text not in RESERVED or text == "INTERVAL")
            shown = text if plain else quoted(text)
            return shown + (f"({', '.join(map(str, params))})" if params else "")


# ---------------------------------------------------------------------------------------------------- expressions


def level(node: ast.Expr) -> int:
    """How tightly `node` binds."""
    match node:
        case ast.Logical(op):
            return OR if op == "OR" else AND
        case ast.Not():
            return NOT
        case ast.IsTest():
            return IS
        case ast.Binary(op):
            return _BINARY_LEVEL[op][0]
        case ast.Between() | ast.InList() | ast.InQuery() | ast.Like():
            return PREDICATE
        case ast.Exists(possible=possible) if possible is not None:
            return PREDICATE
        case ast.Unary():
            return UNARY
        case ast.Subscript() | ast.AtTimeZone():
            return POSTFIX
        case _:
            return PRIMARY


def expr(node: ast.Expr, at_least: int = OR) -> str:
    """The text of an expression, in parentheses if it binds less tightly than its context requires."""
    text = _operator(node) if level(node) < PRIMARY else _primary(node)
    return f"({text})" if level(node) < at_least else text


def exprs(nodes: Iterable[ast.Expr]) -> str:
    return ", ".join(expr(n) for n in nodes)


def conjunction(conditions: Iterable[ast.Expr]) -> str:
    """The conditions joined by AND, each in parentheses if it needs them there."""
    return " AND ".join(expr(c, AND) for c in conditions)


def _operator(node: ast.Expr) -> str:
    match node:
        case ast.Logical(op, operands):
            return f" {op} ".join(expr(o, level(node) + 1) for o in operands)
        case ast.Not(ast.Exists(possible=possible) as among) if possible is not None:
            return _row_among_rows(among, negated=True)
        case ast.Not(operand):
            return f"NOT {expr(operand, NOT)}"
        case ast.Exists():
            return _row_among_rows(node, negated=False)
        case ast.IsTest(operand, what, negated):
            return f"{expr(operand, IS)} IS {_not(negated)}{what}"
        case ast.Binary(op, left, right):
            _, left_level, right_level = _BINARY_LEVEL[op]
            return f"{expr(left, left_level)} {op} {expr(right, right_level)}"
        case ast.Between(operand, low, high, negated):
            bounds = f"{expr(low, CONCAT)} AND {expr(high, CONCAT)}"
            return f"{expr(operand, CONCAT)} {_not(negated)}BETWEEN {bounds}"
        case ast.InList(operand, items, negated):
            return f"{expr(operand, CONCAT)} {_not(negated)}IN ({exprs(items)})"
        case ast.InQuery(operand, inner, negated):
            return f"{expr(operand, CONCAT)} {_not(negated)}IN ({query(inner)})"
        case ast.Like(op, operand, pattern, escape, negated):
            ending = f" ESCAPE {expr(escape, CONCAT)}" if escape is not None else ""
            if op == "RLIKE" and not isinstance(pattern, ast.StringLiteral):  # an operator only before a string
                return f"{expr(operand, CONCAT)} {'!~' if negated else '~'} {expr(pattern, CONCAT)}"
            return f"{expr(operand, CONCAT)} {_not(negated)}{op} {expr(pattern, CONCAT)}{ending}"
        case ast.Unary(op, operand):
            text = expr(operand, UNARY)
            return f"{op} {text}" if text[0] == op else op + text
        case ast.AtTimeZone(operand, zone):
            return f"{expr(operand, POSTFIX)} AT TIME ZONE {expr(zone)}"
        case ast.Subscript(operand, index):
            return f"{expr(operand, POSTFIX)}[{expr(index)}]"
    raise AssertionError(f"{type(node).__name__} is not an operator")


def _row_among_rows(node: ast.Exists, negated: bool) -> str:
    items, inner = row_and_rows(node)
    return f"({exprs(items)}) {_not(negated)}IN ({query(inner)})"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _primary(node: ast.Expr) -> str:
    match node:
        case ast.NumberLiteral(text):
            return text
        case ast.StringLiteral(value):
            return string(value)
        case ast.BinaryLiteral(digits):
            return f"X'{digits}'"
        case ast.BooleanLiteral(value):
            return "TRUE" if value else "FALSE"
        case ast.NullLiteral():
            return "NULL"
        case ast.EveryColumn():
            return "ALL"
        case ast.DefaultValue():
            return "DEFAULT"
        case ast.TypedLiteral(kind, text):
            return f"{kind} {string(text)}"
        case ast.IntervalLiteral(parts):
            return interval(parts)
        case ast.Parameter(text):
            return f":{text}"
        case ast.ColumnRef(column, qualifier, path):
            if qualifier is None:
                return name(column)
            steps = (step if _PLAIN.fullmatch(step) else quoted(step) for step in (*path, column))
            return ".".join([name(qualifier), *steps])
        case ast.Exists(inner):
            return f"EXISTS ({query(inner)})"
        case ast.ScalarQuery(inner):
            return f"({query(inner)})"
        case ast.Cast(operand, to, safe):
            return f"{'TRY_CAST' if safe else 'CAST'}({expr(operand)} AS {type_name(to)})"
        case ast.Case(operand, branches, otherwise):
            words = ["CASE", *([expr(operand)] if operand is not None else [])]
            words.extend(f"WHEN {expr(b.condition)} THEN {expr(b.result)}" for b in branches)
            words.extend([f"ELSE {expr(otherwise)}"] if otherwise is not None else [])
            return " ".join([*words, "END"])
        case ast.Extract(part, operand):
            plain = _PLAIN.fullmatch(part.lower()) is not None and part not in RESERVED
            return f"EXTRACT({part if plain else string(part)} FROM {expr(operand)})"
        case ast.ArrayLiteral(items):
            return f"ARRAY[{exprs(items)}]"
        case ast.Call():
            return call(node)
    raise AssertionError(f"{type(node).__name__} is not an expression")


def interval(parts: tuple[ast.IntervalPart, ...]) -> str:
    if len(parts) == 1:
        return f"INTERVAL '{parts[0].amount}' {parts[0].unit}"
    return f"INTERVAL '{' '.join(f'{p.amount} {p.unit}' for p in parts)}'"


def call(node: ast.Call) -> str:
    bare = node == ast.Call(node.name)
    if bare and node.name.upper() in NILADIC:
        return node.name.upper()
    inside = "*" if node.star else ", ".join(argument(a) for a in node.args)
    if node.distinct:
        inside = f"DISTINCT {inside}".rstrip()
    if node.order_by:
        inside = f"{inside} {order_by(node.order_by)}".lstrip()
    text = f"{_function(node)}({inside})"
    if node.within:
        text += f" WITHIN GROUP ({order_by(node.within)})"
    if node.filter is not None:
        text += f" FILTER (WHERE {expr(node.filter)})"
    if node.nulls is not None:
        text += f" {node.nulls} NULLS"
    match node.over:
        case str():
            text += f" OVER {name(node.over)}"
        case ast.WindowSpec():
            text += f" OVER ({window(node.over)})"
    return text


def _function(node: ast.Call) -> str:
    """The name of a called function: upper case, or quoted if a bare name would be read differently."""
    upper = node.name.upper()
    if _PLAIN.fullmatch(node.name) is None or upper in _SPECIAL_CALLS or (upper in RESERVED and upper not in _CALLABLE):
        return quoted(node.name)
    if upper in _HALF_SPECIAL_CALLS and (node != ast.Call(node.name, node.args) or not node.args):
        return quoted(node.name)
    if upper in _HALF_SPECIAL_CALLS and any(isinstance(a, ast.NamedArgument) for a in node.args):
        return quoted(node.name)
    match node:
        case ast.Call("position", (ast.InList(_, (_,), False),)):
            return quoted(node.name)
    return upper


def argument(node: ast.Argument | ast.NamedArgument) -> str:
    match node:
        case ast.NamedArgument(key, value):
            return f"{key.upper() if is_plain(key) else quoted(key)} => {argument(value)}"
        case ast.TableArgument(source, keys, is_path):
            table = f"TABLE {table_name(source, is_path) if isinstance(source, str) else f'({query(source)})'}"
            if not keys:
                return table
            return f"{table} PARTITION BY {expr(keys[0]) if len(keys) == 1 else f'({exprs(keys)})'}"
        case ast.Descriptor(columns):
            return f"DESCRIPTOR{names(columns)}"
        case ast.RowCount(count):
            return f"ROWS {expr(count, ADDITIVE)}"
    return expr(node)


# -------------------------------------------------------------------------------------------------------- windows


def order_by(items: Iterable[ast.OrderItem]) -> str:
    return "ORDER BY " + ", ".join(order_item(i) for i in items)


def order_item(item: ast.OrderItem) -> str:
    nulls = "" if item.nulls_first is None else " NULLS FIRST" if item.nulls_first else " NULLS LAST"
    return f"{expr(item.expr)}{' DESC' if item.descending else ''}{nulls}"


def window(spec: ast.WindowSpec) -> str:
    """The text between the parentheses of OVER."""
    parts = [name(spec.base)] if spec.base is not None else []
    parts.extend([f"PARTITION BY {exprs(spec.partition_by)}"] if spec.partition_by else [])
    parts.extend([order_by(spec.order_by)] if spec.order_by else [])
    if spec.frame is not None:
        parts.append(_frame(spec.frame))
    return " ".join(parts)


def _frame(frame: ast.Frame) -> str:
    """`ROWS UNBOUNDED PRECEDING` for the running frame, which has this short form; BETWEEN for all others."""
    exclude = f" EXCLUDE {frame.exclude}" if frame.exclude is not None else ""
    if (frame.start.kind, frame.end.kind) == ("UNBOUNDED PRECEDING", "CURRENT ROW"):
        return f"{frame.unit} UNBOUNDED PRECEDING{exclude}"
    return f"{frame.unit} BETWEEN {_bound(frame.start)} AND {_bound(frame.end)}{exclude}"


def _bound(bound: ast.FrameBound) -> str:
    return bound.kind if bound.offset is None else f"{expr(bound.offset, ADDITIVE)} {bound.kind}"


# ------------------------------------------------------------------------------------------------------ relations


def relation(node: ast.Relation) -> str:
    match node:
        case ast.TableRef(table, _, _, as_of, is_path, timed_by):
            time = f" FOR SYSTEM_TIME AS OF {expr(as_of, ADDITIVE)}" if as_of is not None else ""
            by = f" TIMESTAMP BY {expr(timed_by)}" if timed_by is not None else ""
            return f"{table_name(table, is_path)}{time}{alias(node)}{by}"
        case ast.DerivedTable(inner, lateral=lateral):
            return f"{_lateral(lateral)}({query(inner)}){alias(node)}"
        case ast.TableFunction(function, args, lateral=lateral):
            shown = function.upper() if is_plain(function) and function.upper() != "UNNEST" else quoted(function)
            return f"{_lateral(lateral)}{shown}({', '.join(argument(a) for a in args)}){alias(node)}"
        case ast.Unnest(arrays, ordinality, lateral=lateral):
            with_ordinality = " WITH ORDINALITY" if ordinality else ""
            return f"{_lateral(lateral)}UNNEST({exprs(arrays)}){with_ordinality}{alias(node)}"
        case ast.Join(left=left):
            return f"{relation(left)} {join_words(node)} {join_right(node)}{join_condition(node)}"


def qualifier(node: ast.Relation) -> str:
    """The name by which a query calls the rows of a relation; empty if it has none: a join, a file by its path."""
    match node:
        case ast.TableRef(table, alias=None, is_path=False):
            return name(table)
        case ast.Join() | ast.TableRef(alias=None):
            return ""
        case _:
            return name(node.alias) if node.alias is not None else ""


def table_name(table: str, is_path: bool) -> str:
    return string(table) if is_path else name(table)


def _lateral(lateral: bool) -> str:
    return "LATERAL " if lateral else ""


def alias(node: ast.TableRef | ast.DerivedTable | ast.TableFunction | ast.Unnest) -> str:
    if node.alias is None:
        return ""
    return f" AS {name(node.alias)}{f' {names(node.columns)}' if node.columns else ''}"


def join_words(node: ast.Join) -> str:
    kind = "" if node.kind == "INNER" else f"{node.kind} "
    return f"{'ASOF ' if node.asof else 'NATURAL ' if node.natural else ''}{kind}JOIN"


def join_right(node: ast.Join) -> str:
    text = relation(node.right)
    return f"({text})" if isinstance(node.right, ast.Join) else text


def join_reach(node: ast.Join) -> str:
    """The text between the right side of a join and its ON."""
    lengths = ", ".join(" + ".join(f"{p.amount} {p.unit}" for p in length.parts) for length in node.within)
    within = f" WITHIN ({lengths})" if node.within else ""
    return within + (f" MATCH_CONDITION ({expr(node.match)})" if node.match is not None else "")


def join_condition(node: ast.Join) -> str:
    on = f" ON {expr(node.on)}" if node.on is not None else ""
    return join_reach(node) + on + (f" USING {names(node.using)}" if node.using else "")


# -------------------------------------------------------------------------------------------------------- queries


def query(node: ast.Query) -> str:
    """A whole query on one line."""
    parts = [f"WITH {', '.join(f'{cte_head(c)} ({query(c.query)})' for c in node.ctes)}"] if node.ctes else []
    parts.append(body(node.body))
    parts.extend(tail_clauses(node))
    return " ".join(parts)


def cte_head(node: ast.Cte) -> str:
    return f"{name(node.name)}{f' {names(node.columns)}' if node.columns else ''} AS"


def tail_clauses(node: ast.Query) -> list[str]:
    """ORDER BY, LIMIT, OFFSET and EMIT, if present."""
    clauses = [order_by(node.order_by)] if node.order_by else []
    clauses.extend([f"LIMIT {expr(node.limit)}"] if node.limit is not None else [])
    clauses.extend([f"OFFSET {offset(node.offset)}"] if node.offset is not None else [])
    clauses.extend([emit(node.emit)] if node.emit is not None else [])
    return clauses


def offset(node: ast.Expr) -> str:
    """The number of rows; in parentheses unless it starts in a way that makes OFFSET a keyword."""
    return expr(node) if isinstance(node, ast.NumberLiteral | ast.Parameter) else f"({expr(node)})"


def emit(node: ast.Emit) -> str:
    return f"EMIT EVERY {interval(node.every.parts)}" if node.every is not None else f"EMIT {node.mode}"


def body(node: ast.QueryBody) -> str:
    match node:
        case ast.Query():
            return f"({query(node)})"
        case ast.Values(rows):
            return f"VALUES {', '.join(f'({exprs(r.values)})' for r in rows)}"
        case ast.SetOperation(left=left, right=right):
            return f"{set_side(node, left, False)} {set_words(node)} {set_side(node, right, True)}"
        case ast.Select():
            return " ".join([f"{select_words(node)} {', '.join(select_item(i) for i in node.items)}", *clauses(node)])


def set_words(node: ast.SetOperation) -> str:
    return " ".join([node.op, *(["ALL"] if node.all else []), *(["BY NAME"] if node.by_name else [])])


def needs_parentheses(node: ast.SetOperation, side: ast.QueryBody, is_right: bool) -> bool:
    """Whether a set operation under another one needs parentheses: INTERSECT binds tighter, and all associate to the
    left."""
    if not isinstance(side, ast.SetOperation):
        return False
    return (is_right and not (side.op == "INTERSECT" and node.op != "INTERSECT")) or (
        node.op == "INTERSECT" and side.op != "INTERSECT"
    )


def set_side(node: ast.SetOperation, side: ast.QueryBody, is_right: bool) -> str:
    return f"({body(side)})" if needs_parentheses(node, side, is_right) else body(side)


def select_words(node: ast.Select) -> str:
    if node.distinct_on:
        return f"SELECT DISTINCT ON ({exprs(node.distinct_on)})"
    return "SELECT DISTINCT" if node.distinct else "SELECT"


def select_item(node: ast.SelectItem | ast.Star) -> str:
    match node:
        case ast.Star(qualifier, exclude, replaced):
            star = "*" if qualifier is None else f"{name(qualifier)}.*"
            without = f" EXCLUDE {names(c.name for c in exclude)}" if exclude else ""
            others = f" REPLACE ({', '.join(select_item(i) for i in replaced)})" if replaced else ""
            return star + without + others
        case ast.SelectItem(value, alias):
            return expr(value) if alias is None else f"{expr(value)} AS {name(alias)}"


def group_item(node: ast.GroupItem) -> str:
    match node:
        case ast.GroupKeys(keys):
            return f"({exprs(keys)})"
        case ast.GroupingSets(kind, items):
            return f"{kind}{' ' if kind == 'GROUPING SETS' else ''}({', '.join(group_item(i) for i in items)})"
        case _:
            return expr(node)


def named_window(node: ast.NamedWindow) -> str:
    return f"{name(node.name)} AS ({window(node.spec)})"


def clauses(node: ast.Select) -> list[str]:
    """The clauses after the select list, if present."""
    out = [f"FROM {', '.join(relation(r) for r in node.relations)}"] if node.relations else []
    out.extend([f"WHERE {expr(node.where)}"] if node.where is not None else [])
    out.extend([f"GROUP BY {', '.join(group_item(g) for g in node.group_by)}"] if node.group_by else [])
    out.extend(["GROUP BY ALL"] if node.group_all else [])
    out.extend([f"HAVING {expr(node.having)}"] if node.having is not None else [])
    out.extend([f"WINDOW {', '.join(named_window(w) for w in node.windows)}"] if node.windows else [])
    out.extend([f"QUALIFY {expr(node.qualify)}"] if node.qualify is not None else [])
    return out
