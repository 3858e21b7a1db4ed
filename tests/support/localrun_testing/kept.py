"""What tests make of the same content again and again is made once, and kept for other workers, runs and checkouts."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from localrun.base.lock import locked

FOLDER = Path(gettempdir()) / f"localrun-kept-by-tests-{os.getuid() if hasattr(os, 'getuid') else ''}"


def kept(make: Callable[[Path], object], *content: object, folder: Path = FOLDER) -> Path:
    """The file or folder that `make` writes, found again by `content`: all it depends on, each with a telling repr."""
    path = folder / hashlib.sha256(repr(content).encode()).hexdigest()[:32]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock")):
        if not path.exists():
            with TemporaryDirectory(dir=folder) as scratch:
                make(made := Path(scratch, "made"))
                os.replace(made, path)
    return path
