"""Views of an engine that answers when it is asked: its KV cache, its memory, its load, a prompt as it reads it."""

from collections.abc import Mapping
from dataclasses import replace

from localrun.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class GroupView:
    """The blocks of one layer group of the last sequence, one letter for each from position 0 on.

    r reused, c computed, d restored from disk, w outside the window and given back.
    """

    name: str  # "28 layers", "20 layers, window 1024"
    n_layers: int
    window: int | None
    codec: str
    block_bytes: int
    states: str


@dataclass(frozen=True, slots=True)
class KVBytes:
    """Whose the blocks of the KV cache are: the last chat's, those kept for chats that may go on, and what both may
    take in all."""

    chat: int
    kept: int
    budget: int


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One part of memory, in bytes: what it may take at most, as planned, and the most it has taken so far."""

    name: str
    predicted: int
    measured: int


@dataclass(frozen=True, slots=True)
class CacheView:
    """Contents of the KV cache right now."""

    n_tokens: int  # of the last sequence
    ctx: int
    block_tokens: int
    groups: tuple[GroupView, ...]
    used_blocks: int
    total_blocks: int
    tree_tokens: int  # kept in the prefix tree, over all chats
    disk_bytes: int
    memory: tuple[MemoryPart, ...]
    kv: KVBytes = KVBytes(0, 0, 0)

    def for_another_chat(self) -> "CacheView":
        """The same cache beside a chat that the last sequence is not of: it is one of those kept for others."""
        kv = KVBytes(0, self.kv.chat + self.kv.kept, self.kv.budget)
        groups = tuple(replace(group, states="") for group in self.groups)
        return replace(self, n_tokens=0, groups=groups, kv=kv)


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """The load of an engine on a server: requests, and shares of its KV cache and of prompt tokens. None: not told."""

    running: int | None = None
    waiting: int | None = None
    cache_used: float | None = None
    cache_hits: float | None = None


@dataclass(frozen=True, slots=True)
class SizeView:
    """An image in one of the sizes that may be chosen: its tokens, and about the seconds that encoding it takes. 0:
    it is encoded; None: not known."""

    n_tokens: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class ImageView:
    """An image of a prompt by its sha256, in every size that it has, by the names of `base.image_size.SIZES`."""

    sha256: str
    sizes: Mapping[str, SizeView]


@dataclass(frozen=True, slots=True)
class PromptView:
    """A prompt as the model would be given it: how many tokens, and how many of them, from the first on, are computed
    already, None where a server does not say. `ids`, `pieces` with the text of each and `text` with that of all are
    there where they were asked for. `images` are those that the request brings; none where an engine does not say."""

    n_tokens: int
    n_cached: int | None
    ids: tuple[int, ...] = ()
    pieces: tuple[str, ...] = ()
    text: str = ""
    images: tuple[ImageView, ...] = ()
