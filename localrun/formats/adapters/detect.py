"""Opening an adapter in any format, by the content of its files."""

from pathlib import Path

from localrun.base.errors import NotFoundError
from localrun.formats.adapters.adapter_file import AdapterFile
from localrun.formats.adapters.gguf_adapter import open_gguf_adapter
from localrun.formats.adapters.mlx import open_mlx
from localrun.formats.adapters.peft import open_peft
from localrun.formats.file_types import HEAD_BYTES
from localrun.formats.files import bad_file, list_folder, open_regular, read_up_to
from localrun.formats.gguf_names import is_gguf
from localrun.formats.helper_files import ADAPTER, helper_at
from localrun.formats.json_files import read_json
from localrun.formats.metadata import Metadata

CONFIG = "adapter_config.json"
_WEIGHTS = ("adapter_model.safetensors", "adapters.safetensors")  # of PEFT and of MLX
_PICKLED = ("adapter_model.bin", "adapters.npz")


def open_adapter(path: Path) -> AdapterFile:
    """Open and check a GGUF, a .safetensors beside its adapter_config.json, or a folder with either; no matrix is read.

    Raises NotFoundError where there is nothing, ModelFileError for everything wrong with it.
    """
    weights = _weights_in(path) if path.is_dir() else path
    with open_regular(weights) as file:
        head = bytes(read_up_to(file, weights, 0, HEAD_BYTES))
    if head.startswith(b"GGUF"):
        return open_gguf_adapter(weights)
    config = _config_beside(weights)
    if "peft_type" in config:
        return open_peft(path, weights, config)
    if "lora_parameters" in config or "fine_tune_type" in config:
        return open_mlx(path, weights, config)
    raise bad_file("BAD_CONFIG", "it speaks neither of PEFT nor of MLX", config.path, hint="name the folder of a LoRA")


def is_adapter(path: Path) -> bool:
    """Whether a file or folder is an adapter, valid or not, by its header or the files beside it."""
    if path.is_dir():
        return (path / CONFIG).is_file() and not (path / "config.json").is_file()
    if is_gguf(path.name):
        return path.is_file() and helper_at(path) == ADAPTER
    return path.suffix == ".safetensors" and path.is_file() and is_adapter(path.parent)


def _weights_in(folder: Path) -> Path:
    """The file of matrices in the folder of an adapter."""
    names = list_folder(folder)
    found = [name for name in _WEIGHTS if name in names] or [name for name in names if is_gguf(name)]
    if len(found) == 1:
        return folder / found[0]
    if found:
        raise bad_file("AMBIGUOUS", f"there are {len(found)} adapters in this folder", folder, hint="name one of them")
    if pickled := [name for name in _PICKLED if name in names]:
        hint = "save it again as safetensors: program code may hide in a .bin"
        raise bad_file("UNSUPPORTED", f"{pickled[0]} is not read", folder, hint=hint)
    raise NotFoundError(f"there is no adapter in the folder {folder}", f"{CONFIG} and {_WEIGHTS[0]} are needed")


def _config_beside(weights: Path) -> Metadata:
    config = weights.with_name(CONFIG)
    try:
        return Metadata(read_json(config, "BAD_CONFIG"), config)
    except NotFoundError:
        told = f"{CONFIG} is missing beside it, which says how much the matrices count"
        raise bad_file("MISSING_CONFIG", told, weights, hint="get all files of the adapter") from None
