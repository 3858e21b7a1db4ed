"""The libraries that define formats of files: where `make libraries` put them, and how they make samples."""

import os
import subprocess
from pathlib import Path

import pytest

from localrun_testing import REPOSITORY

VARIABLE = "LOCALRUN_LIBRARIES"
PATIENCE = 1800.0  # seconds for what takes a minute where nobody else computes


def make_samples(script: str, folder: Path) -> Path:
    """Run a script of `tools` that writes samples, with the libraries. A skip where there are none."""
    libraries = os.environ.get(VARIABLE)
    if not libraries:
        pytest.skip(f"no libraries of formats: {VARIABLE} names no folder that `make libraries` has filled")
    (python,) = [
        path for name in ("bin", "Scripts") for path in Path(libraries, name).glob("python*") if path.stem == "python"
    ]
    made = subprocess.run(
        [python, REPOSITORY / "tools" / script, folder],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=folder.parent,
    )
    assert made.returncode == 0, made.stderr
    return folder
