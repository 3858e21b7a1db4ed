"""Model folders in the Hugging Face layout: config.json, a tokenizer, and weights in .safetensors files."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError, NotFoundError
from localrun.formats.chat_templates import folder_templates, spare_template
from localrun.formats.files import Stamp, bad_file, list_folder, open_regular, shown, stamp_at
from localrun.formats.json_files import read_json, read_optional
from localrun.formats.metadata import Metadata
from localrun.formats.safetensors_shards import Shard, join_tensors, open_set, open_shard, read_index, weights_of
from localrun.formats.weights import WeightFiles

INDEX_NAME = "model.safetensors.index.json"
# What tells how ids come about.
_BESIDE = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


@dataclass(frozen=True, kw_only=True)
class SafetensorsFolder(WeightFiles):
    """An opened model folder; `metadata` is config.json.

    What the folder lacks is empty or None: one that holds nothing but a tokenizer opens too, with no tensors.
    """

    folder: Path
    generation_config: Metadata
    tokenizer_config: Metadata
    tokenizer_json: Path | None
    chat_templates: Mapping[str, str]  # by name; the usual one is "default"
    spare_template: str | None  # where chat_template.jinja turns out to be wrong; empty: the model has no other
    format: Literal["safetensors"] = "safetensors"


def open_safetensors(path: str | Path) -> SafetensorsFolder:
    """Open and fully check a model folder, or one .safetensors file together with the folder around it.

    Nothing stays open, and no weight is read. A file that the folder's index names opens the whole set.
    Raises NotFoundError when there is nothing to open, ModelFileError for everything wrong with what there is.
    """
    from localrun.formats.checkpoints.beside import with_declared  # a run from a GGUF starts without them
    from localrun.formats.checkpoints.registry import joined_tensors

    path = Path(path)
    if os.path.isdir(path):
        folder, asked = path, None
    else:
        open_regular(path).close()
        folder, asked = path.parent, path.name
    names = set(list_folder(folder))
    beside = _stamps(folder / name for name in _BESIDE if name in names)
    shards = _open_weights(folder, names, asked)
    if not shards and not names & {"config.json", "tokenizer.json"}:
        raise NotFoundError(f"there is no model in the folder {shown(str(path))}", "it holds no .safetensors or .gguf")
    tokenizer_config = _config(folder, names, "tokenizer_config.json")
    notes: list[str] = []
    generation_config = folder / "generation_config.json"
    parts = join_tensors(shards)
    config = _config(folder, names, "config.json")
    declared = with_declared(config, names, lambda name: read_json(folder / name, "BAD_CONFIG"))
    metadata = Metadata(declared, config.path)
    tensors, joined = joined_tensors(parts, metadata)
    return SafetensorsFolder(
        path=path,
        folder=folder,
        metadata=metadata,
        generation_config=Metadata(read_optional(generation_config, notes), generation_config),
        tokenizer_config=tokenizer_config,
        tokenizer_json=folder / "tokenizer.json" if "tokenizer.json" in names else None,
        chat_templates=folder_templates(folder, tokenizer_config, notes),
        spare_template=spare_template(folder, tokenizer_config),
        tensors=tensors,
        joined=joined,
        stamps={shard.path: shard.stamp for shard in shards},
        beside=beside,
        warnings=tuple(notes),
    )


def _stamps(paths: Iterable[Path]) -> dict[Path, Stamp]:
    """Stamps of the files that can be read; the others fail where they are needed."""
    stamps = {}
    for path in paths:
        with suppress(NotFoundError, ModelFileError):
            stamps[path] = stamp_at(path)
    return stamps


def _open_weights(folder: Path, names: set[str], asked: str | None) -> list[Shard]:
    """model.safetensors wins over an index beside it: quantized repos tend to keep the index of the original."""
    single = asked or ("model.safetensors" if "model.safetensors" in names else None)
    if INDEX_NAME in names and single != "model.safetensors":
        index = read_index(folder / INDEX_NAME)
        if single is None or single in index.shards:
            return open_set(index)
    if single is not None:
        return [open_shard(folder / single)]
    files = weights_of(names)
    if len(files) > 1:
        message = f"there are {len(files)} .safetensors files, and no {INDEX_NAME} that says how they belong together"
        raise bad_file(
            "MISSING_INDEX", message, folder, hint=f"download {INDEX_NAME} too, or leave only one of them there"
        )
    if not files and (pickles := sorted(name for name in names if name.endswith(_PICKLES))):
        message = f"the weights are Python pickles ({shown(pickles[0])}), which can run code when they are loaded"
        raise bad_file("PICKLE", message, folder, hint="get this model as .safetensors or .gguf")
    return [open_shard(folder / name) for name in files]


def _config(folder: Path, names: set[str], name: str) -> Metadata:
    path = folder / name
    return Metadata(read_json(path, "BAD_CONFIG") if name in names else {}, path)
