"""Adapters of PEFT: adapter_config.json, and adapter_model.safetensors with `….lora_A.weight` and `….lora_B.weight`."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localrun.base.sanitize import clean
from localrun.formats.adapters.adapter_file import AdapterFile, digest_of, pairs_of, stamps_of, unsupported
from localrun.formats.adapters.weight_names import weight_name
from localrun.formats.files import bad_file, shown
from localrun.formats.metadata import Metadata
from localrun.formats.safetensors_shards import open_shard
from localrun.formats.source import TensorInfo

_PREFIX = "base_model.model."
_HALF = re.compile(r"(?P<module>.+)\.lora_(?P<half>[AB])(?:\.default)?\.weight")
_REFUSED = {  # by key of adapter_config.json: what one that says something there would need
    "modules_to_save": "it holds whole modules (modules_to_save)",
    "target_parameters": "it changes parameters that are no modules, such as experts (target_parameters)",
    "trainable_token_indices": "it changes embeddings (trainable_token_indices)",
    "layer_replication": "it repeats layers (layer_replication)",
    "alora_invocation_tokens": "it is an activated LoRA (alora_invocation_tokens)",
    "use_dora": "it is a DoRA (use_dora)",
    "use_qalora": "it is a QALoRA (use_qalora)",
    "use_bdlora": "it is a BD-LoRA (use_bdlora)",
    "arrow_config": "it chooses among several (arrow_config)",
    "kasa_config": "it is a KaSA (kasa_config)",
    "monteclora_config": "it is a MonteCLoRA (monteclora_config)",
    "lora_bias": "it has biases (lora_bias)",
}
_CHANGES_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")  # beginnings of init_lora_weights
_PLAIN_PATTERN = re.compile(r"\^?([\w.]+)\$?")
_MAX_EXPRESSIONS, _MAX_EXPRESSION = 16, 200  # regular expressions, and characters of one


def open_peft(path: Path, weights: Path, config: Metadata) -> AdapterFile:
    """Read and check an adapter whose matrices are in `weights`. Raises ModelFileError."""
    _check_config(config)
    shard = open_shard(weights)
    halves: dict[str, dict[str, TensorInfo]] = {}
    modules: dict[str, str] = {}
    for name, info in shard.tensors.items():
        module, half = _half_of(name, weights)
        weight = weight_name(module, weights)
        modules[weight] = module
        halves.setdefault(weight, {})[half.lower()] = info
    scales = _Scales(config)
    stamps = {**stamps_of([config.path]), weights: shard.stamp}
    return AdapterFile(
        path=path,
        format="peft",
        pairs=pairs_of(weights, halves, lambda weight, rank: scales.of(modules[weight], rank)),
        stamps=stamps,
        sha256=digest_of(stamps),
        base=clean(config.get_str("base_model_name_or_path", ""), keep_newlines=False),
    )


def _check_config(config: Metadata) -> None:
    """Raise ModelFileError for a kind of adapter other than plain LoRA."""
    if (kind := config.get_str("peft_type")) != "LORA":
        raise unsupported(config.path, f"it is no LoRA, but of the type {shown(kind)}")
    for key, what in _REFUSED.items():
        if config.get(key):
            raise unsupported(config.path, what)
    if (bias := config.get("bias", "none")) != "none":
        raise unsupported(config.path, f"it changes biases (bias {shown(str(bias))})")
    begun = config.get("init_lora_weights")
    if isinstance(begun, str) and begun.lower().startswith(_CHANGES_BASE):
        raise unsupported(config.path, f"it goes with changed weights of its model (init_lora_weights {shown(begun)})")


def _half_of(name: str, path: Path) -> tuple[str, str]:
    """The module of a tensor, and which half it is: A or B."""
    if found := _HALF.fullmatch(name):
        return found["module"].removeprefix(_PREFIX), found["half"]
    if "lora_magnitude_vector" in name:
        raise unsupported(path, f"it is a DoRA: {shown(name)}")
    if "lora_embedding_" in name:
        raise unsupported(path, f"it changes embeddings: {shown(name)}")
    raise unsupported(path, f"it holds {shown(name)}, which is no half of a LoRA (modules_to_save?)")


class _Scales:
    """Factor of each module: alpha / r, or alpha / √r; some modules have a rank or an alpha of their own."""

    def __init__(self, config: Metadata) -> None:
        self._path = config.path
        self._rank, self._alpha = config.get_int("r"), config.get_float("lora_alpha")
        self._by_root = config.get_bool("use_rslora", False)
        self._ranks, self._alphas = (Patterns(config, key) for key in ("rank_pattern", "alpha_pattern"))

    def of(self, module: str, rank: int) -> float:
        """Factor of a module. Raises ModelFileError where its matrices have another rank than the config says."""
        said = self._ranks.value(module, self._rank)
        if said != rank:
            told = f"the matrices of {shown(module)} are of rank {rank:,}, and the config says {said:,}"
            raise bad_file("BAD_TENSOR", told, self._path)
        return float(self._alphas.value(module, self._alpha) / (math.sqrt(rank) if self._by_root else rank))


class Patterns:
    """rank_pattern or alpha_pattern: numbers by the end of a module's name, or a regular expression of it; the first
    one that fits counts. Raises ModelFileError for expressions that may take for ever."""

    def __init__(self, config: Metadata, key: str) -> None:
        values: Any = config.get(key) or {}
        if not isinstance(values, Mapping):
            raise bad_file("BAD_TYPE", f"{key} has to be an object", config.path)
        self._values = [Metadata(values, config.path).get_float(name) for name in values]
        self._plain: dict[str, int] = {}
        self._expressions: dict[int, re.Pattern[str]] = {}
        for place, pattern in enumerate(values):
            plain = _PLAIN_PATTERN.fullmatch(pattern.replace("\\.", "."))
            if plain:
                self._plain.setdefault(("^" if pattern.startswith("^") else "") + plain[1], place)
            else:
                self._expressions[place] = _expression(pattern, config.path)
        if len(self._expressions) > _MAX_EXPRESSIONS:
            raise unsupported(config.path, f"{key} has more than {_MAX_EXPRESSIONS} regular expressions")

    def value(self, module: str, usual: float) -> float:
        """The number of a module; `usual` where no pattern fits."""
        parts = module.split(".")
        ends = [f"^{module}", *(".".join(parts[first:]) for first in range(len(parts)))]
        places = [self._plain[end] for end in ends if end in self._plain]
        places += [place for place, expression in self._expressions.items() if expression.match(module)]
        return self._values[min(places)] if places else usual


def _expression(pattern: str, path: Path) -> re.Pattern[str]:
    """Compile a pattern with at most one repetition beside that of what precedes, so that no name takes long."""
    takes_all = pattern.startswith(".*") and "|" not in pattern  # what precedes, too
    try:
        if len(pattern) <= _MAX_EXPRESSION and sum(pattern.count(sign) for sign in "*+{?") <= 1 + takes_all:
            return re.compile(rf"(?:{pattern})$" if takes_all else rf"(?:.*\.)?(?:{pattern})$")
    except re.error:
        pass
    raise unsupported(path, f"the pattern {shown(pattern)} is not understood here")
