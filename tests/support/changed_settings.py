"""Settings of a query that is compiled already: one compilation runs by several."""

from __future__ import annotations

from cq.compiler.passes import Compiled


def change_settings(compiled: Compiled, **values: int | str) -> None:
    """The settings have these values, as SET in the text would have given them; stages are planned anew."""
    settings = compiled.request.settings
    assert isinstance(settings, dict)  # no code but this changes it
    settings |= values
    compiled._by_workers.clear()
