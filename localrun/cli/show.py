"""`localrun show`: what a model file says about itself. Reads the header only."""

import hashlib
from collections import Counter
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Annotated, Any

import typer

from localrun.base.errors import ModelFileError, UsageError
from localrun.base.units import count, gib
from localrun.cli.console import note, write_json, write_table
from localrun.cli.groups import JsonSwitch, ModelOptions
from localrun.cli.session import find_model
from localrun.formats.detect import open_model_file
from localrun.formats.gguf import GgufFile
from localrun.formats.safetensors import SafetensorsFolder
from localrun.hub.stored import StoredModel
from localrun.model.config import ModelConfig

ModelFile = GgufFile | SafetensorsFolder


def show(
    named: Annotated[str | None, typer.Argument(metavar="[MODEL]", show_default=False)] = None,
    *,
    model: ModelOptions,
    json: JsonSwitch = False,
) -> int:
    """What is in a model: its architecture, its types, its context, what its KV cache costs."""
    if named and model.model:
        raise UsageError("two models are named", "leave one out")
    stored = find_model(replace(model, model=named or model.model))
    source = open_model_file(stored.path)
    for warning in source.warnings:
        note(warning)
    fields = describe(stored, source)
    if json:
        write_json(fields)
    else:
        write_table([(name.replace("_", " "), _shown(name, value)) for name, value in fields.items()])
    return 0


def describe(stored: StoredModel, source: ModelFile) -> dict[str, Any]:
    """The fields of `show --json`. Those of the architecture are None where there is none that we know."""
    types = Counter(tensor.qtype for tensor in source.tensors.values())
    template = _chat_template(source)
    return {
        "name": stored.name,
        "path": str(stored.path),
        "format": source.format,
        "precision": stored.precision,
        "bytes": stored.bytes,
        "arch": _architecture(source),
        "n_params": source.n_params,
        "qtypes": dict(types.most_common()),
        "layouts": _layouts(source),
        **_shape(_config(source)),
        "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest() if template else None,
        "tokenizer": _tokenizer(source),
    }


def _config(source: ModelFile) -> ModelConfig | None:
    """None for a vocabulary without weights and for an architecture we do not know; a broken file still raises."""
    from localrun.model.archs import arch_of

    try:
        return arch_of(source).config(source) if source.tensors else None
    except ModelFileError as error:
        if error.code != "UNSUPPORTED":
            raise
        note(f"{error.message}\n  {error.hint}")
        return None


def _shape(config: ModelConfig | None) -> dict[str, Any]:
    if config is None:
        names = ("n_heads", "n_kv_heads", "head_dim", "hidden_size", "ffn_size", "vocab_size", "max_context")
        return dict.fromkeys(("layers", *names, "sliding_window", "kv_bytes_per_token"))
    from localrun.fit.bytes import kv_bytes_by_codec

    layer = config.layers[0]
    return {
        "layers": config.n_layers,
        "n_heads": layer.n_heads,
        "n_kv_heads": layer.n_kv_heads,
        "head_dim": layer.head_dim,
        "hidden_size": config.hidden_size,
        "ffn_size": layer.ffn_size,
        "vocab_size": config.vocab_size,
        "max_context": config.max_context,
        "sliding_window": config.window,
        "kv_bytes_per_token": kv_bytes_by_codec(config),
    }


def _layouts(source: ModelFile) -> dict[str, int]:
    """Bytes that the weights take in memory, for each way to hold their matrices."""
    from localrun.ops.layouts import F32, FILE

    tensors = source.tensors.values()
    vectors = sum(4 * prod(tensor.shape) for tensor in tensors if len(tensor.shape) < 2)
    matrices = [(t.qtype, prod(t.shape[:-1]), t.shape[-1]) for t in tensors if len(t.shape) >= 2]
    return {layout.name: vectors + sum(layout.nbytes(*matrix) for matrix in matrices) for layout in (FILE, F32)}


def _architecture(source: ModelFile) -> str | None:
    if isinstance(source, GgufFile):
        return source.metadata.get("general.architecture")
    declared = source.metadata.get("architectures")
    return str(declared[0]) if isinstance(declared, list) and declared else source.metadata.get("model_type")


def _chat_template(source: ModelFile) -> str | None:
    template = source.metadata.get("tokenizer.chat_template") if isinstance(source, GgufFile) else source.chat_template
    return template if isinstance(template, str) else None


def _tokenizer(source: ModelFile) -> str | None:
    if isinstance(source, GgufFile):
        parts = (source.metadata.get(f"tokenizer.ggml.{key}") for key in ("model", "pre"))
        return "/".join(str(part) for part in parts if part) or None
    return Path(source.tokenizer_json).name if source.tokenizer_json else None


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "bytes":
        return gib(value)
    if name == "n_params":
        return count(value)
    if name == "layouts":
        return ", ".join(f"{layout} {gib(size)}" for layout, size in value.items())
    if name == "kv_bytes_per_token":
        return ", ".join(f"{codec} {size:,} B" for codec, size in value.items())
    if isinstance(value, dict):
        return ", ".join(f"{key} × {n}" for key, n in value.items())
    return str(value)
