"""Makers of what the project contains: the built-in model, samples for tests, pictures and generated pages."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "support"))  # schemas, clients that play a script
