"""Which adapters (LoRA) count beside the weights of a model, and how one types them."""

import math
import os
from pathlib import Path

from localrun.base.dataclass import dataclass

MAX_SCALE = 1000.0


@dataclass(frozen=True, slots=True)
class AdapterChoice:
    """An adapter, and how much of it counts."""

    path: Path  # a GGUF, a .safetensors, or a folder; absolute
    scale: float = 1.0

    def __str__(self) -> str:
        """The choice in the form that `read_adapter` parses."""
        return f"{self.path}:{self.scale!r}"


def read_adapter(value: object) -> AdapterChoice:
    """FILE or FILE:SCALE. Raises ValueError."""
    if isinstance(value, AdapterChoice):
        path, scale = value.path, value.scale
    else:
        path, scale = _split(str(value))
    if not (math.isfinite(scale) and abs(scale) <= MAX_SCALE):
        raise ValueError(f"a scale from -{MAX_SCALE:g} to {MAX_SCALE:g} is needed")
    return AdapterChoice(Path(os.path.abspath(os.path.expanduser(path))), float(scale))


def _split(text: str) -> tuple[Path, float]:
    """The path, and the scale behind its last colon where there is one. Raises ValueError."""
    if not text or "\0" in text:
        raise ValueError("FILE or FILE:SCALE is needed")
    path, colon, scale = text.rpartition(":")
    if colon and path and not os.path.exists(text):
        try:
            return Path(path), float(scale)
        except ValueError:  # the colon is of the path
            pass
    return Path(text), 1.0
