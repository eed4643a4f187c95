from cq.errors import Diagnostic


def explain(lexed, first, position, end, expected):
    t = lexed.tokens[position] if position < end else lexed.tokens[end - 1]
    return Diagnostic(
        "CQ0100", f"unexpected {t.text!r} expected {sorted(expected)[:30]}", lexed.places.span(t.start, t.end)
    )
