"""The version of cq; state and object code made by another one are not read."""

from typing import Final

VERSION: Final = "0.1.0"
