"""cq: declarative continuous queries on one machine."""

__version__ = "0.1.0"
