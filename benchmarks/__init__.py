"""Measurements of localrun, and of it beside its peers: `python -m benchmarks.NAME`, from the root of the checkout."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Some measure with what the tests have: clients that play a script, writers of tiny models, stand-ins for a driver.
sys.path.append(str(ROOT / "tests" / "support"))
