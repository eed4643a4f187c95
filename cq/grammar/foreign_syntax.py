"""Syntax of other systems and languages, recognised where this grammar does not allow it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath

from cq.errors import Diagnostic, Label
from cq.grammar.fault import COMPARING, SyntaxFault, text_between


def _turned_comparison(fault: SyntaxFault) -> Diagnostic | None:
    """`=<`, `=>` and `><`: the two signs swapped, or another system's operator."""
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


def _half_a_condition(fault: SyntaxFault) -> Diagnostic | None:
    """`a > 1 AND < 5`, `WHERE NOT IN (1)`: a comparison without its left side."""
    token, before = fault.token, fault.before
    if token is None or before is None or token.word not in COMPARING:
        return None
    if before.word not in ("AND", "OR", "NOT", "WHERE", "HAVING", "QUALIFY", "ON") or "NAME" not in fault.expected:
        return None
    label = "what is compared stands before this"
    return Diagnostic("CQ0100", "the condition has no left side", fault.here, label, ("repeat it: x > 1 AND x < 5",))


def _null_without_is(fault: SyntaxFault) -> Diagnostic | None:
    """`x NOT NULL`."""
    if (fault.word(fault.position - 1), fault.word(fault.position)) != ("NOT", "NULL") or "IN" not in fault.expected:
        return None
    assert fault.before is not None
    here = fault.span(fault.before).to(fault.here)
    return Diagnostic("CQ0100", "NOT NULL is not a condition", here, "IS is missing", ("write IS NOT NULL",))


def _list_behind_any(fault: SyntaxFault) -> Diagnostic | None:
    """`x = ANY(1, 2)`, `x <> ALL(1, 2)`."""
    opened = fault.open_at()
    if fault.word(fault.position) != "," or opened is None or opened.word != "(":
        return None
    before = fault.lexed.tokens.index(opened) - 1
    meant = {"= ANY": "IN", "= SOME": "IN", "<> ALL": "NOT IN", "!= ALL": "NOT IN"}
    way = meant.get(f"{fault.word(before - 1)} {fault.word(before)}")
    if way is None:
        return None
    cause = f"{fault.word(before)} takes one array, or a query"
    return Diagnostic("CQ0100", cause, fault.here, help=(f"write {way} (1, 2)",))


def _watermark_misspelt(fault: SyntaxFault) -> Diagnostic | None:
    if fault.word(fault.first) != "CREATE":
        return None
    if fault.word(fault.position) == "WATERMARK" and fault.word(fault.position - 1) == ")":
        help = "move it into the brackets, after the last column and a comma"
        return Diagnostic("CQ0100", "WATERMARK belongs in the list of columns", fault.here, "misplaced", (help,))
    if fault.word(fault.position) == "-" and fault.word(fault.position - 2) == "FOR":
        column = fault.lexed.tokens[fault.position - 1].text
        cause = "the delay of the watermark comes after AS"
        help = f"write WATERMARK FOR {column} AS {column} - INTERVAL '5' SECOND"
        return Diagnostic("CQ0100", cause, fault.here, "AS is missing", (help,))
    for position in (fault.position - 1, fault.position - 2):
        if fault.word(position) == "WATERMARK" and fault.word(position - 1) in (",", "("):
            column = fault.lexed.tokens[position + 1].text
            help = f"write WATERMARK FOR {column} AS {column} - INTERVAL '5' SECOND"
            return Diagnostic(
                "CQ0100", "WATERMARK needs FOR", fault.span(fault.lexed.tokens[position]), "FOR is missing", (help,)
            )
    return None


def _name_of_a_catalog(fault: SyntaxFault) -> Diagnostic | None:
    """`FROM catalog.database.t`, and `FROM rates.csv`, which is indistinguishable from it here."""
    if fault.word(fault.position) != "." or fault.word(fault.position - 2) not in ("FROM", "JOIN", "INTO", "TABLE"):
        return None
    assert fault.before is not None
    last = fault.position + 1
    while fault.word(last + 1) == ".":
        last += 2
    help: tuple[str, ...] = ("write the name alone",)
    if last < fault.end:
        path = "".join(t.text for t in fault.lexed.tokens[fault.position - 1 : last + 1])
        help = (
            f"there is no catalog: write {fault.lexed.tokens[last].text}",
            f"write the path of a file in quotes: '{path}'",
        )
    message = "the name of a stream, view or sink has one part"
    return Diagnostic("CQ0100", message, fault.here, "one too many", help, (Label(fault.span(fault.before), ""),))


def _interval_of_an_expression(fault: SyntaxFault) -> Diagnostic | None:
    """`INTERVAL 'x' || y SECOND`, `INTERVAL f(x) SECOND`."""
    at_once = fault.word(fault.position - 1) == "INTERVAL" and "NUMBER" in fault.expected
    behind_a_name = (fault.word(fault.position - 2), fault.word(fault.position)) == ("INTERVAL", "(")
    if not (at_once or behind_a_name) or fault.token is None:
        return None
    help = "multiply: x * INTERVAL '1' SECOND"
    return Diagnostic(
        "CQ0100",
        "INTERVAL takes a constant, a column or a value in parentheses",
        fault.here,
        "no unit of time" if behind_a_name else "not a number or a string",
        (help,),
    )


def _equal_by_is(fault: SyntaxFault) -> Diagnostic | None:
    """`x IS 5`."""
    token = fault.token
    if token is None or fault.word(fault.position - 1) not in ("IS", "NOT") or "UNKNOWN" not in fault.expected:
        return None
    if token.kinds[-1] not in ("STRING", "NUMBER", "NAME"):
        return None
    help = "write = or <>, or IS [NOT] DISTINCT FROM where NULL is a value"
    return Diagnostic("CQ0100", "IS does not compare with a value", fault.here, help=(help,))


def _query_without_parentheses(fault: SyntaxFault) -> Diagnostic | None:
    """`WITH a AS SELECT …`."""
    if fault.word(fault.position) != "SELECT" or not fault.expected <= {"LPAR", "NOT", "MATERIALIZED"}:
        return None
    message = "a query needs parentheses here"
    return Diagnostic("CQ0100", message, fault.here, "( is missing", ("put it in parentheses: (SELECT …)",))


def _comment_of_another_language(fault: SyntaxFault) -> Diagnostic | None:
    """`// text`: the fault is at the sign, or in the words after it."""
    at = min(fault.position, fault.end - 1)
    while at > fault.first and fault.lexed.tokens[at].kinds[-1] == "NAME":
        at -= 1
    if fault.word(at) != "//":
        return None
    here = fault.span(fault.lexed.tokens[at])
    return Diagnostic("CQ0101", "`//` is not valid here", here, help=("a comment begins with --",))


def _percent_of_the_rows(fault: SyntaxFault) -> Diagnostic | None:
    """`LIMIT 10 PERCENT`, `FETCH FIRST 10 PERCENT ROWS ONLY`, `LIMIT 10%`."""
    at = fault.position
    if fault.word(at) != "PERCENT":
        at -= 1
        if fault.word(at) != "%" or fault.token is not None:
            return None
    count = fault.lexed.tokens[at - 1]
    if count.kinds != ("NUMBER",) or fault.word(at - 2) not in ("LIMIT", "FIRST", "NEXT"):
        return None
    here = fault.span(count).to(fault.span(fault.lexed.tokens[at]))
    clause = "LIMIT" if fault.word(at - 2) == "LIMIT" else "FETCH"
    help = f"before ORDER BY, write QUALIFY ROW_NUMBER() OVER (ORDER BY x) <= COUNT(*) OVER () * {count.text} / 100"
    return Diagnostic("CQ0501", f"{clause} takes a number of rows, not a percentage", here, help=(help,))


def _word_of_others(fault: SyntaxFault) -> Diagnostic | None:
    """`SELECT a INTO t`."""
    word = fault.word(fault.position)
    if word == "INTO" and "FROM" in fault.expected:
        return Diagnostic("CQ0501", "SELECT INTO is not supported", fault.here, help=("write INSERT INTO o SELECT …",))
    return None


def _list_of_others(fault: SyntaxFault) -> Diagnostic | None:
    """`IN ()`."""
    word, before = fault.word(fault.position), fault.word(fault.position - 1)
    if (word, before, fault.word(fault.position - 2)) == (")", "(", "IN"):
        return Diagnostic(
            "CQ0100", "IN takes at least one value", fault.here, "none", ("x IN () is always FALSE: write FALSE",)
        )
    return None


def _field_of_an_element(fault: SyntaxFault) -> Diagnostic | None:
    """`items[1].sku` of an array of objects: such a column of JSON is text."""
    at = fault.position
    if (fault.word(at - 1), fault.word(at)) != ("]", "."):
        return None
    first = at - 4
    while fault.word(first - 1) == ".":
        first -= 2
    name, field = text_between(fault, first, at - 3), text_between(fault, at + 1, at + 2)
    index = fault.word(at - 2)
    if fault.word(at - 3) != "[" or not index.isdigit() or int(index) < 1 or not field.isidentifier():
        name, index, field = "items", "1", "sku"
    help = f"take it from the text of a JSON array: JSON_VALUE({name}, '$[{int(index) - 1}].{field}')"
    return Diagnostic("CQ0501", "an element of an array has no fields", fault.here, help=(help,))


def _column_of_a_path(fault: SyntaxFault) -> Diagnostic | None:
    """`'trips.csv'.fare`."""
    path, column = fault.before, fault.after
    if fault.word(fault.position) != "." or path is None or column is None or path.kinds[0] != "STRING":
        return None
    name = re.sub(r"\W+", "_", PurePath(path.value).name.partition(".")[0]).lower() or "t"
    help = f"name the rows, FROM {path.text} AS {name}, then write {name}.{column.text}"
    return Diagnostic("CQ0501", "a path does not name columns", fault.span(path).to(fault.here), help=(help,))


def _comment_in_a_comment(fault: SyntaxFault) -> Diagnostic | None:
    """`/* a /* b */ c */`: the text after the first end is read as the query."""
    here = (fault.here.line, fault.here.column)
    for comment in fault.lexed.comments:
        if "/*" in comment.text[2:] and (comment.span.line, comment.span.column) < here:
            label = Label(comment.span, "ends at its first */")
            help = "put -- before each line instead"
            return Diagnostic("CQ0100", "comments do not nest", fault.here, "no comment", (help,), (label,))
    return None


FOREIGN_SYNTAX: tuple[Callable[[SyntaxFault], Diagnostic | None], ...] = (
    _turned_comparison,
    _half_a_condition,
    _null_without_is,
    _list_behind_any,
    _watermark_misspelt,
    _name_of_a_catalog,
    _interval_of_an_expression,
    _equal_by_is,
    _query_without_parentheses,
    _comment_of_another_language,
    _percent_of_the_rows,
    _word_of_others,
    _list_of_others,
    _field_of_an_element,
    _column_of_a_path,
    _comment_in_a_comment,
)
"""In the order in which they are tried."""
