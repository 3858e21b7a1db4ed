"""Memory plan of a load: a context and what it costs. Torch-free."""

from dataclasses import dataclass

from localrun.fit.blocks import RING_BLOCKS, RING_MORE, GroupBlocks
from localrun.fit.mapped import Mappable, total_bytes
from localrun.model.config import ModelConfig
from localrun.ops.kv import BLOCK_TOKENS, KVCodec


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A context and what it costs, in bytes. `groups` are the blocks to reserve, in the order of `group_layers`.

    Whatever is said of the memory of a load is read from here: what one chat needs, what chats kept beside it may
    take, and the most that the process will hold.
    """

    ctx: int
    config: ModelConfig  # with every choice made that depends on the context and the user's window
    codec: KVCodec  # of the layers that see everything
    codecs: tuple[KVCodec, ...]  # [n_layers]
    groups: tuple[GroupBlocks, ...]
    weights_bytes: int  # in memory
    needed_kv_bytes: int  # for one chat that fills the context
    scratch_bytes: int  # of the largest step
    needed_scratch_bytes: int  # of the largest step while one chat answers
    overhead_bytes: int
    budget_bytes: int
    grows: bool  # blocks take memory when they are first used, not all at once
    notes: tuple[str, ...] = ()
    mapped: tuple[Mappable, ...] = ()  # matrices that stay on disk

    @property
    def mapped_bytes(self) -> int:
        """Of weights that are read from disk as they are used."""
        return total_bytes(self.mapped)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Blocks of each group."""
        return tuple(group.count for group in self.groups)

    @property
    def ring_blocks(self) -> tuple[int, ...]:
        """16-bit blocks of each group, beside those of a quantised codec."""
        return tuple(group.ring_count for group in self.groups)

    @property
    def kv_bytes(self) -> int:
        """Bytes that keys and values may take in all: those of one chat and of chats that are kept."""
        return sum(group.nbytes for group in self.groups)

    @property
    def kept_kv_bytes(self) -> int:
        """Of these, what one chat does not need: earlier chats and branches stay in it, to be gone on with at once."""
        return self.kv_bytes - self.needed_kv_bytes

    @property
    def needed_bytes(self) -> int:
        """Bytes that one chat that fills the context needs."""
        return self._beside_cache + self.needed_kv_bytes

    @property
    def peak_bytes(self) -> int:
        """The most memory the process will ever hold: all that is set aside, in use."""
        return self._beside_cache + self.kv_bytes

    def peak_after(self, chats: int) -> int:
        """The most memory the process has held once that many chats have filled the context, one after another."""
        return self.overhead_bytes + self.weights_bytes + self.needed_scratch_bytes + self.kv_after(chats)

    def kv_after(self, chats: int) -> int:
        """Of these, the cache: a block of one takes memory as long as the process lives."""
        if not self.grows:
            return self.kv_bytes
        ring = min(RING_BLOCKS, -(-self.ctx // BLOCK_TOKENS)) + (chats - 1) * RING_MORE
        kept = min((float(chats), *(group.chats for group in self.groups if group.is_whole)))
        return sum(group.used(kept, ring) for group in self.groups)

    @property
    def _beside_cache(self) -> int:
        return self.overhead_bytes + self.weights_bytes + self.scratch_bytes
