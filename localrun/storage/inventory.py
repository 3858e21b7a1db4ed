"""What is kept on disk, by model and by chat."""

from dataclasses import dataclass
from pathlib import Path

from localrun.cache.claims import Claims
from localrun.cache.label import Label, read_label
from localrun.cache.stored import StoredBlock, fingerprints, stored_blocks


@dataclass(frozen=True, slots=True)
class KeptChat:
    """`shared_bytes` of `nbytes` are other chats' too. `last_used` in seconds since 1970."""

    chat: str
    nbytes: int
    shared_bytes: int
    last_used: float


@dataclass(frozen=True, slots=True)
class KeptModel:
    """The blocks of one fingerprint: a model, its codec, and how it is computed."""

    fingerprint: str
    label: Label
    n_blocks: int
    nbytes: int
    last_used: float
    chats: tuple[KeptChat, ...]


def inventory(root: Path) -> list[KeptModel]:
    """The one last used first, and of each the chat last used."""
    by_fingerprint: dict[str, dict[str, StoredBlock]] = {}
    for block in stored_blocks(root):
        by_fingerprint.setdefault(block.fingerprint, {})[block.name] = block
    models = [
        _model(folder, found) for folder in fingerprints(root) if (found := by_fingerprint.get(folder.name)) is not None
    ]
    return sorted(models, key=lambda model: -model.last_used)


def _model(folder: Path, blocks: dict[str, StoredBlock]) -> KeptModel:
    claims = Claims(folder)
    held = {chat: claims.of(chat) & blocks.keys() for chat in claims.chats()}
    n_chats: dict[str, int] = {}
    for names in held.values():
        for name in names:
            n_chats[name] = n_chats.get(name, 0) + 1
    chats = [
        KeptChat(
            chat,
            sum(blocks[name].nbytes for name in names),
            sum(blocks[name].nbytes for name in names if n_chats[name] > 1),
            max(blocks[name].last_used for name in names),
        )
        for chat, names in held.items()
        if names
    ]
    return KeptModel(
        folder.name,
        read_label(folder),
        len(blocks),
        sum(block.nbytes for block in blocks.values()),
        max(block.last_used for block in blocks.values()),
        tuple(sorted(chats, key=lambda chat: -chat.last_used)),
    )
