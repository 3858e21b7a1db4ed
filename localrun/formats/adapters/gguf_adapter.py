"""Adapters in a GGUF: general.type adapter, and `<tensor>.lora_a` [rank, n_in], `<tensor>.lora_b` [n_out, rank]."""

import re
from pathlib import Path

from localrun.base.sanitize import clean
from localrun.formats.adapters.adapter_file import AdapterFile, digest_of, pairs_of, unsupported
from localrun.formats.files import bad_file, shown
from localrun.formats.gguf import open_gguf
from localrun.formats.source import TensorInfo

_HALF = re.compile(r"(?P<weight>.+)\.lora_(?P<half>[ab])")
_OF_LAYERS = re.compile(r"blk\.\d.*")


def open_gguf_adapter(path: Path) -> AdapterFile:
    """Read and check an adapter in a GGUF. Raises ModelFileError."""
    source = open_gguf(path)
    metadata = source.metadata
    if metadata.get_str("general.type", "") != "adapter":
        raise bad_file("NOT_AN_ADAPTER", "this GGUF is no adapter (general.type)", path, hint="name a LoRA")
    if (kind := metadata.get_str("adapter.type", "lora")) != "lora":
        raise unsupported(path, f"it is no LoRA, but of the type {shown(kind)}")
    if any(key.startswith("adapter.alora.") for key in metadata):
        raise unsupported(path, "it is an activated LoRA (adapter.alora)")
    halves: dict[str, dict[str, TensorInfo]] = {}
    for name, info in source.tensors.items():
        found = _HALF.fullmatch(name)
        if found is None:
            raise unsupported(path, f"it holds the whole tensor {shown(name)}")
        if not _OF_LAYERS.fullmatch(found["weight"]):
            raise unsupported(path, f"it changes {shown(found['weight'])}, which is of no layer")
        halves.setdefault(found["weight"], {})[found["half"]] = info
    alpha = metadata.get_float("adapter.lora.alpha", 0.0)
    return AdapterFile(
        path=path,
        format="gguf",
        pairs=pairs_of(path, halves, lambda weight, rank: alpha / rank if alpha else 1.0),
        stamps=source.stamps,
        sha256=digest_of(source.stamps),
        arch=metadata.get_str("general.architecture"),
        base=clean(metadata.get_str("general.base_model.0.name", ""), keep_newlines=False),
    )
