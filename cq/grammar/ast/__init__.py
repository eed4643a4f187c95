"""Query texts as frozen trees: the vocabulary between the parser and the binder.

Every node is frozen and knows its `span`; equality and hashes ignore spans. Sequences are tuples. Names are plain
`str`, already folded (unquoted names are lower case). Where a caret must be narrower than the node there is a
`…_span` field.

The parser normalises spellings, so a binder meets only these forms:
    `!=` is `<>`; `x::t` is Cast; `EMIT ON WINDOW CLOSE` is FINAL, `EMIT ON UPDATE` is CHANGES; RAISE is Signal;
    `SUBSTRING(x FROM a FOR b)`, `POSITION(a IN b)`, `TRIM(LEADING c FROM x)` are Calls of substring, position, ltrim;
    CURRENT_TIMESTAMP is a Call without arguments; all interval spellings are (amount, unit) parts;
    `TUMBLE(s, ts, …)` in FROM is `TUMBLE(TABLE s, DESCRIPTOR(ts), …)`; `ROWS 5 PRECEDING` has both of its bounds;
    `CREATE STREAM v AS SELECT …` is CreateView; AND and OR are n-ary and never nested in themselves;
    a parenthesised query that has no clause of its own outside SELECT is its body.
No tree is higher than `parser.MAX_DEPTH`, so plain recursion over it is safe.
"""

from cq.grammar.ast.literals import *  # noqa: F403
from cq.grammar.ast.nodes import *  # noqa: F403
from cq.grammar.ast.queries import *  # noqa: F403
from cq.grammar.ast.statements import *  # noqa: F403
