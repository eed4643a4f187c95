"""Where things are in the tree."""

from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
QUERIES = ROOT / "queries"
GOLDEN = TESTS / "golden"
SLT = TESTS / "slt"
SUPPORT = TESTS / "support"
