"""The files of a folder that belong to its model, by name: weights, index, configs and tokenizer."""

import re
from pathlib import Path

from localrun.formats.chat_templates import MORE_TEMPLATES
from localrun.formats.json_files import read_object
from localrun.formats.safetensors_shards import MAX_INDEX_BYTES, weights_of

SAFETENSORS_INDEX = "model.safetensors.index.json"
_SHARD = re.compile(r"(?:model|consolidated)(?:-\d{5}-of-\d{5})?\.safetensors")
_BESIDE_WEIGHTS = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template"
    r"|preprocessor_config|processor_config|quantize_config|quant_config|hf_quant_config|tekken)\.json"
    r"|chat_template\.jinja|"
    + MORE_TEMPLATES
    + r"/[^/]+\.jinja|merges\.txt|(tokenizer|spiece)\.model|model\.safetensors\.index\.json"
)


def is_beside_weights(name: str) -> bool:
    """Whether a file of this name, or path in its repository, is needed beside the weights."""
    return _BESIDE_WEIGHTS.fullmatch(name) is not None


def weights_in(folder: Path) -> list[Path]:
    """Files of weights that loading a folder opens."""
    names = [path.name for path in entries(folder) if path.is_file()]
    return [folder / name for name in weights_of(names, _indexed(folder / SAFETENSORS_INDEX))]


def files_of_folder(folder: Path) -> list[Path]:
    """Files of the safetensors model in a folder, without the user's other files."""
    found = [*folder.iterdir(), *entries(folder / MORE_TEMPLATES)]
    names = {path.relative_to(folder).as_posix() for path in found if path.is_file() or path.is_symlink()}
    weights = {name for name in names if name.endswith(".safetensors")}
    mine = {name for name in weights if _SHARD.fullmatch(name)} | weights & _indexed(folder / SAFETENSORS_INDEX)
    if not mine and len(weights) == 1:
        mine = weights
    return [folder / name for name in sorted(mine | set(filter(is_beside_weights, names)))]


def _indexed(index: Path) -> set[str]:
    """Files that an index names; none without a readable index."""
    names = read_object(index, MAX_INDEX_BYTES).get("weight_map")
    return {name for name in names.values() if isinstance(name, str)} if isinstance(names, dict) else set()


def entries(place: Path) -> list[Path]:
    """Entries of a folder, sorted; empty when it cannot be read."""
    try:
        return sorted(place.iterdir())
    except OSError:
        return []
