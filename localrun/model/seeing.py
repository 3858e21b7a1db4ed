"""Names of all that sees images: a part of a checkpoint, or a projector beside a GGUF. Without numpy."""

from collections.abc import Mapping

from localrun.formats.source import TensorSource

# By general.architecture: whether layers of their tower are tapped.
QWEN_ARCHS: Mapping[str, bool] = {"qwen35": False, "qwen35moe": False, "qwen3vl": True, "qwen3vlmoe": True}
SEEING = frozenset((*QWEN_ARCHS, "gemma4"))
# By the type of what sees, in `vision_config` of a checkpoint and, the last of each, in a projector.
_QWEN = ("qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe")  # older checkpoints name the whole model
QWEN_TYPES = (*_QWEN, *(f"{name}_vision" for name in _QWEN), "qwen3vl_merger")
GEMMA_TYPES = ("gemma4_vision", "gemma4v")
EMBEDDER_TYPES = ("gemma4_unified_vision", "gemma4uv")
_TYPES = frozenset((*QWEN_TYPES, *GEMMA_TYPES, *EMBEDDER_TYPES))


def type_of(source: TensorSource) -> str:
    """The type of the part that sees in a checkpoint, or of a projector; empty where there is none."""
    if source.format != "gguf":
        vision = source.metadata.get("vision_config")
        found = vision.get("model_type") if isinstance(vision, dict) else None
        return found if isinstance(found, str) else ""
    metadata = source.metadata
    return metadata.get_str("clip.vision.projector_type", metadata.get_str("clip.projector_type", ""))


def may_see(source: TensorSource) -> bool:
    """Whether a checkpoint has a part that sees, or a GGUF is of a kind that sees through a projector beside it."""
    if source.format == "gguf":
        return source.metadata.get("general.architecture") in SEEING
    return type_of(source) in _TYPES
