"""Sources and sinks: where rows come from and where they go.

`open_source` and `infer` for streams, `open_sink` for outputs; their interfaces are in `protocol.py`, and every
connector is an entry in `registry.py`. Nothing here knows plans or engines. Names are loaded when used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cq.connectors.access import FileAccess
    from cq.lang.schema import Field, Unheld


def infer(options: Mapping[str, str], access: FileAccess | None = None, stream: str = "") -> tuple[Field | Unheld, ...]:
    """The columns of a source declared without any; see `inference.py`."""
    from cq.connectors import inference

    return inference.infer(options, access, stream)
