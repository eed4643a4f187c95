"""Where things are in the tree."""

from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
QUERIES = ROOT / "queries"
SHIPPED = sorted(QUERIES.rglob("*.cq"))
GOLDEN = TESTS / "golden"
SLT = TESTS / "slt"
SUPPORT = TESTS / "support"
