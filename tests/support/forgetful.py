"""An object cache for tests of what is compiled."""

from __future__ import annotations


class Forgetful:
    """A cache that keeps nothing."""

    def get(self, key: str) -> None:
        return None

    def put(self, made: object, source: str = "") -> None:
        pass

    def source_path(self, key: str) -> str:
        return f"<{key}>"
