"""Calls as other systems write them: clauses inside the parentheses, prefixes, functions as arguments."""

from __future__ import annotations

from collections.abc import Callable

from cq.errors import Diagnostic, Label
from cq.grammar.fault import SyntaxFault, text_between
from cq.grammar.unsupported import GATHERED

LONGEST_ARGUMENT = 60  # characters of a call that a help line writes out
_OF_THE_ROW = "ARG_MAX(x, y) gives the x of a row with the greatest y, ARG_MIN(x, y) that of a row with the least"


def _name_of_the_call(fault: SyntaxFault) -> int | None:
    """The position of the name of the call whose parentheses are open here."""
    opened = fault.open_at()
    if opened is None or opened.word != "(":
        return None
    position = fault.lexed.tokens.index(opened) - 1
    if position < fault.first or fault.lexed.tokens[position].kinds[-1] != "NAME":
        return None
    return position


def _cast_by_another_name(fault: SyntaxFault) -> Diagnostic | None:
    """`SAFE_CAST(x AS T)`, `STRUCT(x AS y)`."""
    position = _name_of_the_call(fault)
    if fault.word(fault.position) != "AS" or position is None or "RPAR" not in fault.expected:
        return None
    name = fault.lexed.tokens[position]
    if name.end != fault.lexed.tokens[position + 1].start:
        return None
    if name.word in ("STRUCT", "NAMED_STRUCT"):
        help = "give each field a column of its own"
        return Diagnostic("CQ0501", "structs are not supported", fault.span(name), help=(help,))
    safe = name.word in ("SAFE_CAST", "TRY_CONVERT")
    help = "write TRY_CAST(x AS T)" if safe else "remove AS and what follows it; CAST(x AS T) converts x"
    labels = (Label(fault.span(name), ""),)
    return Diagnostic("CQ0100", f"{name.word} takes no AS", fault.here, labels=labels, help=(help,))


def _limit_in_a_call(fault: SyntaxFault) -> Diagnostic | None:
    """`ARRAY_AGG(x ORDER BY y LIMIT 2)`."""
    position = _name_of_the_call(fault)
    if fault.word(fault.position) != "LIMIT" or position is None or fault.word(fault.position + 2) != ")":
        return None
    name, count = (fault.lexed.tokens[n].text for n in (position, fault.position + 1))
    call = text_between(fault, position, fault.position)
    if name.upper() != "ARRAY_AGG":
        help = f"collect the values with ARRAY_AGG(x ORDER BY y), take [1:{count}] of them, and combine those"
    elif len(call) > LONGEST_ARGUMENT:
        help = f"close the parenthesis before LIMIT, and write [1:{count}] behind it in place of LIMIT {count}"
    else:
        help = f"write {call})[1:{count}]"
    return Diagnostic("CQ0501", f"LIMIT in {name.upper()} is not supported", fault.here, help=(help,))


def _having_in_a_call(fault: SyntaxFault) -> Diagnostic | None:
    """`ANY_VALUE(x HAVING MAX y)` of BigQuery."""
    position, tokens, at = _name_of_the_call(fault), fault.lexed.tokens, fault.position
    bound, end = fault.word(at + 1), _closing(fault, at + 2)
    if fault.word(at) != "HAVING" or position is None or bound not in ("MAX", "MIN") or end == fault.end:
        return None
    name = tokens[position]
    value, by = text_between(fault, position + 2, at), text_between(fault, at + 2, end)
    if name.word == "ANY_VALUE" and by and len(value + by) <= LONGEST_ARGUMENT:
        help = f"write ARG_{bound}({value}, {by})"
    else:
        help = f"for one value, {_OF_THE_ROW}"
    return Diagnostic("CQ0501", f"HAVING in {name.word} is not supported", fault.here, help=(help,))


def _closing(fault: SyntaxFault, position: int) -> int:
    """Where the parenthesis closes that is open at `position`."""
    depth = 0
    while position < fault.end:
        depth += (fault.word(position) == "(") - (fault.word(position) == ")")
        if depth < 0:
            break
        position += 1
    return position


def _lambda(fault: SyntaxFault) -> Diagnostic | None:
    """`LIST_TRANSFORM(tags, x -> UPPER(x))`: UPPER is read as the field of a row."""
    arrow = fault.position - 2
    if (fault.word(arrow), fault.word(fault.position)) != ("->", "(") or _name_of_the_call(fault) is None:
        return None
    here = fault.span(fault.lexed.tokens[arrow])
    return Diagnostic("CQ0501", "functions as arguments are not supported", here, help=(GATHERED,))


def _comprehension(fault: SyntaxFault) -> Diagnostic | None:
    """`[x * 2 FOR x IN xs]`."""
    opened = fault.open_at()
    if opened is None or (opened.text, fault.word(fault.position)) != ("[", "FOR"):
        return None
    return Diagnostic("CQ0501", "a list with FOR in it is not supported", fault.here, help=(GATHERED,))


def _array_of_a_query(fault: SyntaxFault) -> Diagnostic | None:
    """`ARRAY(SELECT x FROM t)`."""
    opened = fault.open_at()
    if opened is None or fault.word(fault.position) not in ("SELECT", "WITH"):
        return None
    at = fault.lexed.tokens.index(opened) - 1
    if fault.word(at) != "ARRAY":
        return None
    here = fault.span(fault.lexed.tokens[at])
    help = "write (SELECT ARRAY_AGG(x) FROM t)"
    return Diagnostic("CQ0501", "ARRAY does not take a query", here, help=(help,))


def _kept_rows(fault: SyntaxFault) -> Diagnostic | None:
    """`MAX(x) KEEP (DENSE_RANK LAST ORDER BY y)` of Oracle: KEEP is read as an alias."""
    if [fault.word(fault.position + n) for n in (-2, -1, 0)] != [")", "KEEP", "("] or fault.before is None:
        return None
    help = f"for one value, {_OF_THE_ROW}"
    return Diagnostic("CQ0501", "KEEP is not supported", fault.span(fault.before), help=(help,))


def _prefix(fault: SyntaxFault) -> Diagnostic | None:
    """`SAFE.SUBSTR(x, 1, 2)`, `dbo.f(x)`: read as the column of a relation."""
    name, at = fault.before, fault.position
    if name is None or (fault.word(at - 2), fault.word(at)) != (".", "(") or name.kinds[-1] != "NAME":
        return None
    prefix = fault.lexed.tokens[max(fault.first, at - 3)]
    help = [f"write {name.text}(…)"]
    if prefix.word == "SAFE":
        help[0] += f", which stops the query where SAFE.{name.text} would give NULL"
        help.append("TRY_CAST, SAFE_DIVIDE, TRY_ADD, TRY_SUBTRACT and TRY_MULTIPLY give NULL in place of an error")
    here = fault.span(prefix).to(fault.span(name))
    return Diagnostic("CQ0501", "the name of a function has one part", here, help=tuple(help))


FOREIGN_CALLS: tuple[Callable[[SyntaxFault], Diagnostic | None], ...] = (
    _cast_by_another_name,
    _limit_in_a_call,
    _having_in_a_call,
    _lambda,
    _comprehension,
    _array_of_a_query,
    _kept_rows,
    _prefix,
)
"""In the order in which they are tried."""
