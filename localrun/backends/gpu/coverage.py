"""What of a model kernels of ours compute, and what torch computes on the device, slower. Torch-free."""

from localrun.model.config import LayerSpec, ModelConfig
from localrun.ops.kv import KVCodec

MAX_HEAD_DIM = 512


def has_head_dim(head_dim: int) -> bool:
    """Whether there are kernels of attention for heads of this size."""
    return head_dim % 16 == 0 and head_dim <= MAX_HEAD_DIM


def left_to_torch(spec: LayerSpec, codec: KVCodec, *, all_codecs: bool) -> list[str]:
    """The parts of a layer that have no kernels yet, named for the user; `codec`: what it keeps keys and values in.

    all_codecs: attention has kernels for quantised caches, too.
    """
    attends, reads_codec = spec.has_attention, all_codecs or codec.native
    parts = {
        "recurrent layers": spec.mixer is not None,
        "mixtures of experts": spec.mixture is not None,
        "attention over a quantised cache": attends and not reads_codec,
        f"attention of heads of {spec.head_dim}": attends and reads_codec and not has_head_dim(spec.head_dim),
    }
    return [name for name, is_there in parts.items() if is_there]


def leaves_any(config: ModelConfig, codec: KVCodec, *, all_codecs: bool) -> bool:
    """Whether torch computes some layer, where a user wants `codec`."""
    return any(left_to_torch(spec, spec.cache.codec(codec), all_codecs=all_codecs) for spec in config.layers)
