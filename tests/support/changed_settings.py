"""Change settings of a compiled query: one compilation runs with several."""

from __future__ import annotations

from cq.compiler.passes import Compiled


def change_settings(compiled: Compiled, **values: int | str) -> None:
    """Give the settings these values, as SET in the text would; stages are planned again."""
    settings = compiled.request.settings
    assert isinstance(settings, dict)  # no code but this changes it
    settings |= values
    compiled._by_workers.clear()
