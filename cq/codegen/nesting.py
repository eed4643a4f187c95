"""Keep generated functions shallow: Python refuses source that is indented a hundred levels deep.

A condition nested too deep is put into a flag, and what depends on it follows at the same level under that flag:

    if a:                       yes1 = 0
        x                       if a:
        if b:                       x
            y         becomes       if b:
        z                               yes1 = 1
                                if yes1 == 1:
                                    y
                                if a: z      (a, too, is a flag by then)

Statements keep their order, so values and errors stay the same; `break`, `continue` and `return` leave the flags as
they left the nest.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from itertools import count

MOST_DEPTH = 80  # levels of indentation in one function: Python's tokenizer takes 99

Fresh = Callable[[], str]


def flat(body: list[ast.stmt], fresh: Fresh | None = None, most: int = MOST_DEPTH) -> list[ast.stmt]:
    """Return the body of a function with at most about `most` levels of indentation; the same list if it has fewer.

    fresh: makes the names of flags; by default they are counted from 1.
    """
    heights: dict[int, int] = {}
    if _measure(body, heights) + 1 <= most:
        return body
    numbers = count(1)
    return _Flattener(heights, fresh or (lambda: f"nest{next(numbers)}"), most).block(body, 1)


def _measure(body: Sequence[ast.stmt], heights: dict[int, int]) -> int:
    """Note the levels of indentation below every statement, by id; return the most."""
    most = 0
    for statement in body:
        inner = 0
        if isinstance(statement, ast.If | ast.While | ast.For):
            inner = 1 + _measure(statement.body, heights)
            other = statement.orelse
            if other:
                chained = len(other) == 1 and isinstance(other[0], ast.If)  # printed as elif
                inner = max(inner, _measure(other, heights) + (0 if chained else 1))
        heights[id(statement)] = inner
        most = max(most, inner)
    return most


class _Flattener:
    def __init__(self, heights: dict[int, int], fresh: Fresh, most: int) -> None:
        self._heights, self._fresh, self._most = heights, fresh, most

    def _fits(self, statement: ast.stmt, depth: int) -> bool:
        return depth + self._heights[id(statement)] <= self._most

    def block(self, body: Sequence[ast.stmt], depth: int) -> list[ast.stmt]:
        """Flatten statements at `depth`."""
        made: list[ast.stmt] = []
        for statement in body:
            if self._fits(statement, depth):
                made.append(statement)
            elif isinstance(statement, ast.If):
                flags, choose = self._choice(statement)
                made += [*flags, choose, *self._chosen(statement, choose, depth)]
            else:
                made.append(self._loop(statement, depth))
        return made

    def _loop(self, statement: ast.stmt, depth: int) -> ast.stmt:
        assert isinstance(statement, ast.While | ast.For), "only branches and loops have a body"
        statement.body = self.block(statement.body, depth + 1)
        return statement

    def _choice(self, statement: ast.If) -> tuple[list[ast.stmt], ast.If]:
        """Flags set to 0, and the statement that sets the one whose side is taken."""
        sides = [self._fresh() for side in (statement.body, statement.orelse) if side]
        chosen: list[list[ast.stmt]] = [[_assign(flag, 1)] for flag in sides]
        return [_assign(flag, 0) for flag in sides], ast.If(statement.test, chosen[0], chosen[1] if chosen[1:] else [])

    def _chosen(self, statement: ast.If, choose: ast.If, depth: int) -> list[ast.stmt]:
        """The sides of a branch, each under its flag."""
        made: list[ast.stmt] = []
        for side, setting in ((statement.body, choose.body), (statement.orelse, choose.orelse)):
            if side:
                assert isinstance(setting[0], ast.Assign) and isinstance(setting[0].targets[0], ast.Name)
                made += self._under(setting[0].targets[0].id, side, depth)
        return made

    def _under(self, flag: str, body: Sequence[ast.stmt], depth: int) -> list[ast.stmt]:
        """Statements that run if the flag is 1, none of them nested in another for the flag's sake."""
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for statement in body:
            if self._fits(statement, depth + 1):
                run.append(statement)
            elif isinstance(statement, ast.If):
                flags, choose = self._choice(statement)
                made += [*flags, _when(flag, [*run, choose]), *self._chosen(statement, choose, depth)]
                run = []
            else:
                run.append(self._loop(statement, depth + 1))
        return [*made, _when(flag, run)] if run else made


def _assign(flag: str, value: int) -> ast.stmt:
    return ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(value), lineno=0)


def _when(flag: str, body: list[ast.stmt]) -> ast.stmt:
    return ast.If(ast.Compare(ast.Name(flag, ast.Load()), [ast.Eq()], [ast.Constant(1)]), body, [])
