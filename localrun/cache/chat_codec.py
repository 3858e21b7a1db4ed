"""In which codec a chat is kept on disk: gone on with in another one, all of it would be computed anew."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localrun.cache.claims import FOLDER, file_name, read_claims
from localrun.cache.label import read_label
from localrun.cache.stored import fingerprints


@dataclass(frozen=True, slots=True)
class ChatCodec:
    """`n_tokens` are kept in it, of all branches of the chat."""

    name: str
    n_tokens: int


def codec_of(root: Path, chat: str, path: Path, precision: str, numerics: int) -> ChatCodec | None:
    """The one last written of this chat with this model; None where nothing is kept that could still be used."""
    found: list[tuple[float, ChatCodec]] = []
    for folder in fingerprints(root):
        label, claims = read_label(folder), folder / FOLDER / file_name(chat)
        if (label.path, label.precision, label.numerics) == (str(path), precision, numerics):
            with suppress(OSError):
                n_tokens = label.block_tokens * len(read_claims(claims))
                found.append((claims.stat().st_mtime, ChatCodec(label.codec, n_tokens)))
    _, newest = max(found, key=lambda one: one[0], default=(0.0, None))
    return newest if newest is not None and newest.n_tokens else None
