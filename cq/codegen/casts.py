"""Kernel forms of CAST: one name for every pair of types."""

from __future__ import annotations

from cq.expressions import Cast


def cast_form(e: Cast) -> str:
    """The kernel form of a cast."""
    return "cast"
