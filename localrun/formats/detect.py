"""Opening a model whatever its format: decided by what is in the file, never by its name."""

import os
from pathlib import Path

from localrun.formats.file_types import HEAD_BYTES, is_safetensors, recognise
from localrun.formats.files import bad_file, list_folder, open_regular, read_up_to
from localrun.formats.gguf import GgufFile, open_gguf
from localrun.formats.gguf_names import is_gguf, part_number
from localrun.formats.helper_files import helper_at, helper_beside_model
from localrun.formats.safetensors import SafetensorsFolder, open_safetensors


def open_model_file(path: str | Path) -> GgufFile | SafetensorsFolder:
    """Open a GGUF file (any shard), a .safetensors file, or a folder of either, fully checked.

    Raises NotFoundError when there is nothing, ModelFileError for a file that is bad, or that is something else:
    the message names what it really is.
    """
    path = Path(path)
    if os.path.isdir(path):
        return _open_folder(path)
    with open_regular(path) as file:
        head = bytes(read_up_to(file, path, 0, HEAD_BYTES))
    if head.startswith(b"GGUF"):
        return open_gguf(path)
    if is_safetensors(head):
        return open_safetensors(path)
    kind = recognise(head)
    raise bad_file(kind.code, f"this is {kind.name}, not a model that can be read", path, 0, kind.hint)


def _open_folder(folder: Path) -> GgufFile | SafetensorsFolder:
    """A folder that holds nothing but one GGUF model opens like that model."""
    names = list_folder(folder)
    models = _models_among([name for name in names if is_gguf(name) and part_number(name)[0] == 1], folder)
    if not models or any(name.endswith(".safetensors") for name in names):
        return open_safetensors(folder)
    if len(models) > 1:
        raise bad_file(
            "AMBIGUOUS", f"there are {len(models)} GGUF models in this folder", folder, hint="name one of them"
        )
    return open_gguf(folder / models[0])


def _models_among(names: list[str], folder: Path) -> list[str]:
    """The GGUFs that are models of their own, and not something for the model beside them."""
    models = [name for name in names if not helper_at(folder / name)]
    return [name for name in models if not helper_beside_model(name, folder.absolute().name)] or models
