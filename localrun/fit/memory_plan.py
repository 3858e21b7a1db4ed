"""Memory plan of a load: the context and its bytes. Torch-free."""

from localrun.base.dataclass import dataclass
from localrun.fit.blocks import RING_BLOCKS, RING_MORE, GroupBlocks
from localrun.fit.mapped import Mappable, total_bytes
from localrun.model.config import ModelConfig
from localrun.ops.kv import BLOCK_TOKENS, KVCodec


@dataclass(frozen=True, slots=True)
class DraftPlan:
    """The cache of what drafts beside a model."""

    config: ModelConfig  # with every choice made
    codecs: tuple[KVCodec, ...]  # [n_layers]
    groups: tuple[GroupBlocks, ...]

    @property
    def blocks(self) -> tuple[int, ...]:
        """Number of blocks of each group."""
        return tuple(group.count for group in self.groups)

    @property
    def ring_blocks(self) -> tuple[int, ...]:
        """Number of 16-bit blocks of each group."""
        return tuple(group.ring_count for group in self.groups)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A context and its cost in bytes. `groups` are the blocks to reserve, in the order of `group_layers`.

    Every figure about the memory of a load comes from here: what one chat needs, what cached chats may take, and the
    most that the process will hold.
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
    sight_bytes: int = 0  # kept free for images: nothing of it is taken before the first one
    draft: DraftPlan | None = None

    @property
    def mapped_bytes(self) -> int:
        """Bytes of weights that are read from disk as they are used."""
        return total_bytes(self.mapped)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Number of blocks of each group."""
        return tuple(group.count for group in self.groups)

    @property
    def ring_blocks(self) -> tuple[int, ...]:
        """Number of 16-bit blocks of each group, in addition to those of a quantised codec."""
        return tuple(group.ring_count for group in self.groups)

    @property
    def kv_bytes(self) -> int:
        """Bytes that the KV cache may take: of one chat and of cached chats."""
        return sum(group.nbytes for group in self._all_groups)

    @property
    def kept_kv_bytes(self) -> int:
        """Bytes of the KV cache beyond the need of one chat; earlier chats and branches stay there."""
        return self.kv_bytes - self.needed_kv_bytes

    @property
    def needed_bytes(self) -> int:
        """Bytes that one chat that fills the context needs, without images."""
        return self._beside_cache + self.needed_kv_bytes

    @property
    def peak_bytes(self) -> int:
        """The most memory that the process will ever hold: everything reserved, in use."""
        return self._beside_cache + self.kv_bytes + self.sight_bytes

    def peak_after(self, chats: int) -> int:
        """The most memory that the process has held after `chats` chats without images have filled the context in
        turn."""
        return self.overhead_bytes + self.weights_bytes + self.needed_scratch_bytes + self.kv_after(chats)

    def kv_after(self, chats: int) -> int:
        """Bytes of the cache after `chats` chats; a block that was used takes memory until the process ends."""
        if not self.grows:
            return self.kv_bytes
        ring = min(RING_BLOCKS, -(-self.ctx // BLOCK_TOKENS)) + (chats - 1) * RING_MORE
        kept = min((float(chats), *(group.chats for group in self.groups if group.is_whole)))
        return sum(group.used(kept, ring) for group in self._all_groups)

    @property
    def _all_groups(self) -> tuple[GroupBlocks, ...]:
        return (*self.groups, *(() if self.draft is None else self.draft.groups))

    @property
    def _beside_cache(self) -> int:
        return self.overhead_bytes + self.weights_bytes + self.scratch_bytes
