"""What of a model kernels of ours compute, and what torch computes on the device, slower. Torch-free."""

from localrun.backends.gpu.scratch import has_head_dim
from localrun.model.config import LayerSpec
from localrun.ops.kv import KVCodec


def left_to_torch(spec: LayerSpec, codec: KVCodec) -> list[str]:
    """The parts of a layer that have no kernels yet, named for the user; `codec`: what it keeps keys and values in."""
    attends = spec.has_attention
    parts = {
        "recurrent layers": spec.mixer is not None,
        "mixtures of experts": spec.mixture is not None,
        "attention over a quantised cache": attends and not codec.native,
        f"attention of heads of {spec.head_dim}": attends and codec.native and not has_head_dim(spec.head_dim),
    }
    return [name for name, is_there in parts.items() if is_there]
