"""Which layers of a model share blocks."""

from collections.abc import Sequence

from localrun.cache.groups import Group, make_groups
from localrun.model.config import LayerSpec
from localrun.ops.kv import KV_CODECS, KVCodec


def group_layers(layers: Sequence[LayerSpec], codecs: Sequence[KVCodec] | None = None) -> tuple[Group, ...]:
    """`codecs` of every layer; without them what layers are stored in where 16 bits are wanted."""
    kinds = [spec.cache for spec in layers]
    return make_groups(kinds, codecs or [kind.codec(KV_CODECS["f16"]) for kind in kinds])
