"""Images of an exported chat: files in a folder beside it, without metadata unless that is asked for."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from localrun.base.content import ImagePart, images_in
from localrun.base.errors import ImageError, UsageError
from localrun.chat.conversation import Chat

NAME_CHARS = 16  # of the hash that names a file


@contextmanager
def images_beside(chat: Chat, path: Path, keep_metadata: bool) -> Iterator[Mapping[str, str]]:
    """Write the images of a chat into a new folder beside an export; gives where each is, from there, by its sha256.

    Those whose copies are gone are left out. The folder goes again where the body fails. Raises UsageError where there
    is such a folder already, or OSError.
    """
    images = {part.sha256: part for message in chat.tree.messages() for part in images_in(message.content)}
    folder = path.with_name(f"{path.stem}-images")
    if not images:
        yield {}
        return
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise UsageError(f"{folder} exists already", "choose another name") from None
    try:
        files = {part.sha256: written(chat, part, folder, keep_metadata) for part in images.values()}
        yield {sha256: f"{folder.name}/{name}" for sha256, name in files.items() if name}
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def written(chat: Chat, part: ImagePart, folder: Path, keep_metadata: bool) -> str:
    """Write an image into a folder; the name of its file, empty where its copy is gone."""
    from localrun.images.open import format_suffix
    from localrun.images.without_metadata import without_metadata

    try:
        data = chat.images.data(part)
        data, suffix = (data, format_suffix(data)) if keep_metadata else without_metadata(data)
    except ImageError:
        return ""
    name = f"{part.sha256[:NAME_CHARS]}{suffix}"
    (folder / name).write_bytes(data)
    return name
