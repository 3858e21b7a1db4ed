"""Removal inside one folder, never through a link, whose target belongs to others."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from localrun.base.errors import HubError

_BY_DESCRIPTOR = {os.open, os.unlink, os.rmdir} <= os.supports_dir_fd  # then no link can be put in our way in between


def unlink_inside(root: Path, path: Path) -> None:
    """Remove the file or link at `path`, if it exists. HubError for a link between `root` and `path`."""
    with suppress(FileNotFoundError), _opened(root, path.parent) as folder:
        os.unlink(path.name if folder is not None else path, dir_fd=folder)


def remove_empty_folders(root: Path, place: Path) -> None:
    """Remove `place` and its parents while they are empty, up to `root`, which stays; stop at a link."""
    while place != root and root in place.parents:
        try:
            with _opened(root, place.parent) as folder:
                os.rmdir(place.name if folder is not None else place, dir_fd=folder)
        except FileNotFoundError:
            pass
        except (OSError, HubError):
            return
        place = place.parent


def refuse_links(root: Path, path: Path) -> None:
    """Raise HubError for a link between `root` and `path`; both ends may be links."""
    between = [place for place in reversed(path.parents) if root in place.parents]
    real = Path(os.path.realpath(root))
    for place in between:
        if Path(os.path.realpath(place)) != real / place.relative_to(root):
            raise _behind_a_link(place)


def _behind_a_link(link: Path) -> HubError:
    return HubError(
        f"{link} leads to {os.path.realpath(link)}; localrun changes and removes nothing behind a link",
        "remove that link yourself, or the files where they are",
    )


@contextmanager
def _opened(root: Path, place: Path) -> Iterator[int | None]:
    """Descriptor of the folder `place`, opened from `root` without following links; None where the system has none."""
    if root not in (place, *place.parents) or ".." in place.parts:
        raise HubError(f"{place} is not inside {root}", "remove it yourself")
    if sys.platform == "win32" or not _BY_DESCRIPTOR:
        refuse_links(root, place / "file")
        yield None
        return
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        at = root
        for part in place.relative_to(root).parts:
            at /= part
            inner = _open_folder(descriptor, at)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _open_folder(parent: int, at: Path) -> int:
    if sys.platform == "win32":
        raise NotImplementedError
    try:
        return os.open(at.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise _behind_a_link(at) from None
        raise
