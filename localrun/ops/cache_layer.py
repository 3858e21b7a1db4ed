"""Place and shape of a layer's cache entries, as backends take them. Torch-free, and no numpy."""

from localrun.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CacheLayer:
    """Place and shape of the keys and values of one layer, or of its state. NOWHERE: it has neither."""

    group: int
    index: int  # within the group's pool
    n_heads: int
    n_kv_heads: int
    head_dim: int
    value_dim: int | None = None  # None: as many as head_dim; otherwise values are the first dims of keys, stored alone
    state_size: int = 0  # f32 numbers of a recurrent layer's state; it has no keys and values


NOWHERE = CacheLayer(group=-1, index=0, n_heads=0, n_kv_heads=0, head_dim=0)
