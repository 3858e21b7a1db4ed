"""Names of the modules that adapters change, as checkpoints of transformers and MLX have them."""

import re
from pathlib import Path

from localrun.formats.adapters.adapter_file import unsupported
from localrun.formats.files import shown

_OF_LAYERS = re.compile(r"(?:(?:model|language_model|text_model|backbone)\.){0,2}(layers\.\d.*)")
_PARTS = {  # what a module outside layers, or within some, belongs to
    r"embed_tokens|wte|embeddings": "embeddings",
    r"lm_head": "the output matrix (lm_head)",
    r"vision|visual|vit|audio|projector": "eyes or ears",
}


def weight_name(module: str, path: Path) -> str:
    """The name of a module's weight from `layers.` on. Raises ModelFileError for a module that is of no layer."""
    if found := _OF_LAYERS.fullmatch(module):
        return f"{found[1]}.weight"
    part = next((what for pattern, what in _PARTS.items() if re.search(pattern, module)), "a module of no layer")
    raise unsupported(path, f"it changes {part}: {shown(module)}")
