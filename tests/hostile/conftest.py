"""Makes the fixtures of the other tests importable here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
