"""The version of cq; state and object code of other versions are not read."""

from typing import Final

VERSION: Final = "0.1.0"
