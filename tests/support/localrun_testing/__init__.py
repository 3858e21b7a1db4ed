"""What tests of several rooms share. Oracles and sample data are found here, and nowhere else."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]


def shared_folder() -> Path | None:
    """Sample data too large or not ours to commit: LOCALRUN_SHARED, or the folder `shared` beside the checkout."""
    named = os.environ.get("LOCALRUN_SHARED")
    path = Path(named) if named else REPOSITORY.parent / "shared"
    return path if path.is_dir() else None
