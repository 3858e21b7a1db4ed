"""Adapters of MLX: adapter_config.json, and adapters.safetensors: `….lora_a` [n_in, rank], `….lora_b` [rank, n_out]."""

import re
from pathlib import Path

from localrun.base.sanitize import clean
from localrun.formats.adapters.adapter_file import AdapterFile, digest_of, pairs_of, stamps_of, unsupported
from localrun.formats.adapters.weight_names import weight_name
from localrun.formats.files import bad_file, shown
from localrun.formats.metadata import Metadata
from localrun.formats.safetensors_shards import open_shard
from localrun.formats.source import TensorInfo

_HALF = re.compile(r"(?P<module>.+)\.lora_(?P<half>[ab])")


def open_mlx(path: Path, weights: Path, config: Metadata) -> AdapterFile:
    """Read and check an adapter whose matrices are in `weights`. Raises ModelFileError."""
    kind = config.get_str("fine_tune_type", "lora")
    if kind != "lora":
        raise unsupported(config.path, f"it is no LoRA: fine_tune_type is {shown(kind)}")
    shard = open_shard(weights)
    halves: dict[str, dict[str, TensorInfo]] = {}
    for name, info in shard.tensors.items():
        found = _HALF.fullmatch(name)
        if found is None:
            what = "is a DoRA" if name.endswith(".m") else "holds whole tensors"
            raise unsupported(weights, f"it {what}: {shown(name)}")
        halves.setdefault(weight_name(found["module"], weights), {})[found["half"]] = info
    scale, rank = _scale_and_rank(config)

    def scale_of(weight: str, found: int) -> float:
        if rank not in (None, found):
            told = f"the matrices of {shown(weight)} are of rank {found:,}, and the config says {rank:,}"
            raise bad_file("BAD_TENSOR", told, config.path)
        return scale

    stamps = {**stamps_of([config.path]), weights: shard.stamp}
    return AdapterFile(
        path=path,
        format="mlx",
        pairs=pairs_of(weights, halves, scale_of, is_turned=True),
        stamps=stamps,
        sha256=digest_of(stamps),
        base=clean(config.get_str("model", ""), keep_newlines=False),
    )


def _scale_and_rank(config: Metadata) -> tuple[float, int | None]:
    """Scale and rank of all modules.

    Raises ModelFileError where the config has no scale, or that of early versions, which was multiplied by alpha /
    rank.
    """
    values = config.get("lora_parameters")
    if not isinstance(values, dict):
        raise bad_file("MISSING_KEY", "the key 'lora_parameters' is missing", config.path)
    parameters = Metadata(values, config.path)
    if "alpha" in parameters:
        raise unsupported(config.path, "it is of an early version of MLX, whose scale counts with alpha")
    return parameters.get_float("scale"), parameters.get_int("rank") if "rank" in parameters else None
