"""Kinds of GGUFs that see images through a projector beside them. Torch-free, and without numpy."""

from collections.abc import Mapping

# By general.architecture: whether layers of their tower are tapped.
QWEN_ARCHS: Mapping[str, bool] = {"qwen35": False, "qwen35moe": False, "qwen3vl": True, "qwen3vlmoe": True}
SEEING = frozenset((*QWEN_ARCHS, "gemma4"))
