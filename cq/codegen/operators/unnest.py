"""unnest: a loop over the elements of an array; for SPLIT over the pieces of the text, without making an array."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from cq.codegen.expressions.arrays import count_of, each_element, element, element_type
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow, consumes
from cq.codegen.operators.over import over_table
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.hash_tables import text_key
from cq.codegen.state.prefetched_entries import prefetch_entry
from cq.codegen.values import Row, Val, any_null
from cq.codegen.writer import expr
from cq.lang.expressions import Call, Column, Expr, substitute
from cq.lang.types import BIGINT, VARCHAR
from cq.planner.operators import Filter, Over, Project, Unnest
from cq.planner.plan.node import LogicalNode
from cq.runtime.layout.words import Word


@consumes("unnest", copies_text=False)
def consume_unnest(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """NULL gives no rows, unless the unnest is an outer one."""
    assert isinstance(node, Unnest)
    array = node.array
    if node.outer:
        _outer_elements(flow, node, row, emit(flow.scope, row, array))
    elif isinstance(array, Call) and array.function.walked:
        split = [emit(flow.scope, row, a) for a in array.args]
        _unless(flow, any_null(split), partial(_pieces, flow, node, row, *split))
    else:
        value = emit(flow.scope, row, array)
        _unless(flow, value.null, partial(_elements, flow, node, row, value))


def _unless(flow: Flow, null: ast.expr | None, write: Callable[[], None]) -> None:
    if null is None:
        write()
        return
    with flow.scope.when(expr("not N", N=null)):
        write()


def _elements(flow: Flow, node: Unnest, row: Row, array: Val) -> None:
    """Deliver one element after the other."""
    nullable = node.schema.fields[len(node.input.schema)].nullable
    with each_element(flow.scope, array) as (place, one):
        value = one if nullable else Val(one.type, one.parts, key=one.key)
        number = Val(BIGINT, (expr("P + 1", P=place),))
        flow.deliver(node, row.with_added(len(node.input.schema), [value, number]))


def _outer_elements(flow: Flow, node: Unnest, row: Row, array: Val) -> None:
    """Deliver one element after the other, or NULLs if there are none."""
    scope, writer = flow.scope, flow.writer
    count = ast.Name(writer.let(ast.Constant(0), "count"), ast.Load())
    _unless(flow, array.null, lambda: writer.set(count.id, count_of(scope, array)))
    empty = scope.let(expr("C == 0", C=count), "empty")
    turn = writer.fresh("p")
    place = ast.Name(turn, ast.Load())
    with writer.for_(turn, 0, scope.let(expr("pick(E, 1, C)", E=empty, C=count), "rounds")), scope.block():
        one = scope.variables(element_type(array.type), True, "element")
        with scope.when(expr("not E", E=empty)):
            scope.assign(one, element(scope, array, count, place))
        number = Val(BIGINT, (expr("P + 1", P=place),), empty)
        flow.deliver(node, row.with_added(len(node.input.schema), [one, number]))


# pieces to find before the first one is delivered, so that their data can be prefetched
PIECES_AHEAD = Word(16, "PIECES_AHEAD")


def _pieces(flow: Flow, node: Unnest, row: Row, text: Val, separator: Val) -> None:
    """Every piece between separators, empty ones too; an empty separator gives the whole text.

    Find some pieces and prefetch for them, then deliver them; repeat to the end of the text."""
    scope, writer, width = flow.scope, flow.writer, len(node.input.schema)
    at, number = (writer.let(ast.Constant(0), hint) for hint in ("at", "number"))
    keyed = list(followers(flow.stage, node))
    words = 4 if keyed else 2  # address and length of a piece; where it is a key, the key's words too
    found = writer.hoist(expr("state + N * 8", N=flow.stage.scratch_words(words * PIECES_AHEAD, "PIECES")), "found")
    with writer.while_(expr("A <= L", A=at, L=text.parts[1])), scope.block():
        count = writer.let(ast.Constant(0), "count")
        with (
            writer.while_(expr("A <= L and C < MOST", A=at, L=text.parts[1], C=count, MOST=PIECES_AHEAD)),
            scope.block(),
        ):
            start, size = _find_piece(flow, text, separator, at)
            key = text_key(scope, start, size) if keyed else None
            for n, word in enumerate((start, size, *(key or ()))):
                writer.code("st_i64(F, C * WORDS + N, W)", F=found, C=count, WORDS=words, N=n, W=word)
            writer.code("C = C + 1", C=count)
            added = [Val(VARCHAR, (start, size), key=key), Val(BIGINT, (ast.Constant(0),))]
            _prefetch(flow, keyed, row.with_added(width, added))
        turn = writer.fresh("p")
        with writer.for_(turn, 0, count), scope.block():
            start, size, *rest = (
                scope.let(expr("ld_i64(F, P * WORDS + N)", F=found, P=turn, WORDS=words, N=n), hint)
                for n, hint in enumerate(("piece", "size", "head", "tail")[:words])
            )
            writer.code("N = N + 1", N=number)
            piece = Val(VARCHAR, (start, size), key=(rest[0], rest[1]) if rest else None)
            added = [piece, Val(BIGINT, (ast.Name(number, ast.Load()),))]
            flow.deliver(node, row.with_added(width, added))


def _values(flow: Flow, row: Row, exprs: Sequence[Expr]) -> list[Val]:
    return [emit(flow.scope, row, e) for e in exprs]


def _prefetch(flow: Flow, keyed: Sequence[tuple[Over, list[Expr]]], ahead: Row) -> None:
    """Prefetch the table entries that a row will need."""
    for over, exprs in keyed:
        local, layout = over_table(flow, over)
        prefetch_entry(layout.keys, local, partial(_values, flow, ahead, exprs), None)


def _find_piece(flow: Flow, text: Val, separator: Val, at: str) -> tuple[ast.expr, ast.expr]:
    """Address and length of the piece that begins at `at`, which advances to the next one."""
    scope, writer = flow.scope, flow.writer
    address, length = text.parts
    sep, sep_length = separator.parts
    end = writer.let(ast.Constant(0), "end")
    with writer.if_(expr("N == 1", N=sep_length)):
        writer.set(end, expr("find_byte(T, L, A, ld_u8(S, 0))", T=address, L=length, A=at, S=sep))
    with writer.otherwise():
        writer.set(end, expr("split_end(T, L, A, S, N)", T=address, L=length, A=at, S=sep, N=sep_length))
    start = scope.let(expr("T + A", T=address, A=at), "piece")
    size = scope.let(expr("E - A", E=end, A=at), "size")
    writer.code("A = split_next(L, E, N)", A=at, L=length, E=end, N=sep_length)
    return start, size


def followers(stage: StageDraft, node: LogicalNode) -> Iterator[tuple[Over, list[Expr]]]:
    """The running operators after `node`, past filters and projections, that are keyed by plain columns of it."""
    for reader, _ in stage.readers.get(id(node), ()):
        plain = [Column(f.type, f.nullable, i) for i, f in enumerate(node.schema.fields)]
        columns: list[Expr] = list(plain)
        at = reader
        while not isinstance(at, Over):
            if isinstance(at, Project):
                columns = [substitute(e, columns) for e in at.exprs]
            elif not isinstance(at, Filter):
                break
            following = stage.readers.get(id(at), ())
            if len(following) != 1:
                break
            at = following[0][0]
        if isinstance(at, Over):
            keys = [substitute(k, columns) for k in at.partition]
            if all(isinstance(k, Column) for k in keys):
                yield at, keys
