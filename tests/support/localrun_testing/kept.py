"""What tests make of the same content again and again is made once, and kept for other workers, runs and checkouts."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from localrun.base.lock import locked

FOLDER = Path(gettempdir()) / f"localrun-kept-by-tests-{os.getuid() if hasattr(os, 'getuid') else ''}"
UNUSED_SECONDS = 30 * 24 * 3600


def kept(make: Callable[[Path], object], *content: object, folder: Path = FOLDER) -> Path:
    """The file or folder that `make` writes, found again by `content`: all it depends on, each with a telling repr."""
    path = folder / hashlib.sha256(repr(content).encode()).hexdigest()[:32]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(lock := path.with_suffix(".lock")):
        if not path.exists():
            with TemporaryDirectory(dir=folder) as scratch:
                make(made := Path(scratch, "made"))
                os.replace(made, path)
        os.utime(lock)  # when it was used last
    return path


def remove_unused(folder: Path = FOLDER) -> None:
    """Remove what no test has used for a month: of code that has changed since, mostly."""
    now = time.time()
    for lock in folder.glob("*.lock"):
        with suppress(FileNotFoundError):  # another run removes the same
            if now - lock.stat().st_mtime > UNUSED_SECONDS:
                with locked(lock):
                    path = lock.with_suffix("")
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                lock.unlink()
