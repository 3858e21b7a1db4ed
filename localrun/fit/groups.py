"""Which layers of a model share blocks."""

from collections.abc import Sequence

from localrun.cache.groups import Group
from localrun.model.config import LayerSpec
from localrun.ops.kv import KV_CODECS, KVCodec


def group_layers(layers: Sequence[LayerSpec], codecs: Sequence[KVCodec] | None = None) -> tuple[Group, ...]:
    """Put layers that share window, K/V shape and codec together, in order of first appearance."""
    rows = codecs or [KV_CODECS["f16"]] * len(layers)
    members: dict[tuple[int | None, int, int, bool, KVCodec], list[int]] = {}
    for index, (spec, codec) in enumerate(zip(layers, rows, strict=True)):
        window = spec.window if spec.sink_window is None else spec.sink_window
        key = (window, spec.n_kv_heads, spec.head_dim, spec.sink_window is not None, codec)
        members.setdefault(key, []).append(index)
    return tuple(Group(tuple(indices), *key) for key, indices in members.items())
