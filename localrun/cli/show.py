"""`localrun show`: facts about a model, read from its header."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from localrun.backends.registry import choose_gpu, usual_memory
from localrun.base.errors import NotFoundError, UsageError
from localrun.base.image_words import cost_words
from localrun.base.settings import read_settings
from localrun.base.units import count, gib
from localrun.cli.completion import complete_any_model
from localrun.cli.console import note, write_json, write_table
from localrun.cli.downloads import open_hub
from localrun.cli.groups import DeviceOption, JsonSwitch, ModelOptions, OfflineSwitch
from localrun.cli.session import find_model
from localrun.cli.show_adapter import adapter_path, show_adapter
from localrun.fit.estimate import USUAL_CONTEXT
from localrun.fit.mapped import total_bytes
from localrun.fit.precisions import is_extreme
from localrun.fit.weights import held, held_bits
from localrun.formats.chat_templates import gguf_templates
from localrun.formats.checkpoints.registry import held_as
from localrun.formats.detect import open_model_file
from localrun.formats.gguf import GgufFile
from localrun.formats.helper_files import head_beside
from localrun.formats.safetensors import SafetensorsFolder
from localrun.formats.source import TensorSource
from localrun.hub.alternatives import unsupported_message
from localrun.hub.disk.stored import StoredModel
from localrun.hub.fits import fit_preview, fit_stored
from localrun.hub.projectors import images_on_disk
from localrun.hub.remote.preview import Wanted, find_on_hub, preview_or_guess
from localrun.hub.verdicts import verdicts
from localrun.model.archs import arch_of
from localrun.model.capability import flaw
from localrun.model.config import ModelConfig
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.odd_norms import odd_norms
from localrun.model.precision import in_precision
from localrun.model.weights import rounds_activations

ModelFile = GgufFile | SafetensorsFolder


def show(
    named: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", show_default=False, autocompletion=complete_any_model)
    ] = None,
    *,
    model: ModelOptions,
    device: DeviceOption = None,
    offline: OfflineSwitch = False,
    json: JsonSwitch = False,
) -> int:
    """Show what is in a model: architecture, types, context, and the size of its KV cache. Works before a download."""
    if named and model.model:
        raise UsageError("two models are named", "leave one out")
    choose_gpu(read_settings().device if device is None else device)
    wanted = replace(model, model=named or model.model)
    if adapter := adapter_path(wanted.model):
        return show_adapter(adapter, json)
    try:
        fields = _on_disk(find_model(wanted))
    except NotFoundError:
        remote = find_on_hub(wanted.model or "", wanted.precision)
        if remote is None:
            raise
        fields = _on_hub(remote, offline)
    if json:
        write_json(fields)
    else:
        known = fields if fields["path"] else {name: value for name, value in fields.items() if value}
        write_table([(name.replace("_", " "), _shown(name, value)) for name, value in known.items()])
    return 0


def _on_disk(stored: StoredModel) -> dict[str, Any]:
    source = open_model_file(stored.path)
    for warning in source.warnings:
        note(warning)
    if unused := sum(rounds_activations(name) for name in source.tensors):
        note(f"{unused:,} activation scales of the file are ignored: localrun rounds activations less")
    return describe(stored, source)


def _on_hub(wanted: Wanted, offline: bool) -> dict[str, Any]:
    """The same fields for a model that is not on disk, as far as known, and the files there are to download."""
    with open_hub(offline) as http:
        found = preview_or_guess(http, wanted)
    source = "the catalogue" if found.approximate else wanted.repo
    note(f"not on this machine; facts from {source}" + (found.unreachable and f" ({found.unreachable})"))
    if found.obstacle:
        note(f"this version cannot run it: {found.obstacle}")
    for unread, why in found.unreadable.items():
        note(f"{unread} cannot be read: {why}")
    fit = fit_preview(found, usual_memory().available, USUAL_CONTEXT) if found.shape else None
    if fit and fit.elsewhere:
        note(fit.elsewhere)
    variants = {variant.precision: variant.bytes for variant in found.variants}
    sizes = variants or {candidate.precision: candidate.file_bytes for candidate in found.candidates}
    return {
        "name": wanted.name,
        "path": None,
        "format": found.variants[0].format if found.variants else "gguf",
        "precision": wanted.precision,
        "bytes": None,
        "arch": found.shape.config.arch if found.shape else None,
        "n_params": found.shape.n_params if found.shape else None,
        "qtypes": {},
        "layouts": {},
        **_shape(found.shape.config if found.shape else None),
        "chat_template_sha256": None,
        "tokenizer": None,
        "repo": wanted.repo,
        "licence": found.licence,
        "gated": found.repo.gated if found.repo else None,
        "note": wanted.entry["note"] if wanted.entry else None,
        "precisions": sizes,
        "held_bytes": {candidate.precision: candidate.weights_bytes for candidate in found.candidates},
        "mappable_bytes": {candidate.precision: total_bytes(candidate.mappable) for candidate in found.candidates},
        "images": found.images.as_fields() if found.images else None,
        "approximate": found.approximate,
        "verdict": verdicts(fit) if fit and not found.obstacle else {},
        "obstacle": found.obstacle or None,
    }


def describe(stored: StoredModel, source: ModelFile) -> dict[str, Any]:
    """The fields of `show --json`. Those of an unknown architecture are None."""
    loaded = in_precision(source, stored.precision)
    types = Counter(tensor.qtype for tensor in loaded.tensors.values())
    weights, template = held(loaded), _chat_template(source)
    why = flaw(source) if source.tensors else "it holds no weights"
    if why:
        note(f"this version cannot run it: {unsupported_message(why, stored.name, source.n_params)}")
    else:
        _note_what_is_special(loaded)
    fit = None if why else fit_stored([stored], usual_memory().available, USUAL_CONTEXT)
    if fit and fit.elsewhere:
        note(fit.elsewhere)
    return {
        "name": stored.name,
        "path": str(stored.path),
        "format": source.format,
        "precision": stored.precision,
        "bytes": stored.bytes,
        "arch": _architecture(source),
        "n_params": source.n_params,
        "qtypes": dict(types.most_common()),
        "layouts": _layouts(loaded),
        **_shape(None if why else arch_of(source).config(source)),
        **({"drafts": "mtp"} if not why and head_beside(stored.path) else {}),
        "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest() if template else None,
        "tokenizer": _tokenizer(source),
        "held_bytes": {stored.precision: weights.nbytes},
        "mappable_bytes": {stored.precision: total_bytes(weights.mappable)},
        "images": images.as_fields() if not why and (images := images_on_disk(stored)) else None,
        "verdict": verdicts(fit) if fit else {},
        "obstacle": why or None,
    }


def _note_what_is_special(source: TensorSource) -> None:
    """Note how a quantised checkpoint holds its matrices, and norms with unusual values."""
    if told := held_as(source.tensors, held_bits):
        note(told)
    for warning in odd_norms(source, read_weight_refs(source, read_config(source))):
        note(warning)


def _shape(config: ModelConfig | None) -> dict[str, Any]:
    if config is None:
        names = ("n_heads", "n_kv_heads", "head_dim", "hidden_size", "ffn_size", "vocab_size", "max_context")
        return dict.fromkeys(("layers", *names, "sliding_window", "kv_bytes_per_token", "state_bytes", "drafts"))
    from localrun.fit.bytes import kv_bytes_by_codec, state_bytes

    layer = next((spec for spec in config.layers if spec.has_attention), config.layers[0])  # that has heads
    return {
        "layers": config.n_layers,
        "n_heads": layer.n_heads,
        "n_kv_heads": layer.n_kv_heads,
        "head_dim": layer.head_dim,
        "hidden_size": config.hidden_size,
        "ffn_size": next((spec.ffn_size for spec in config.layers if spec.ffn_size), 0),
        "vocab_size": config.vocab_size,
        "max_context": config.max_context,
        "sliding_window": config.window,
        "kv_bytes_per_token": kv_bytes_by_codec(config),
        "state_bytes": state_bytes(config) or None,
        "drafts": "mtp" if config.drafting else None,
    }


def _layouts(source: TensorSource) -> dict[str, str]:
    """Memory layout on this machine for the matrices of each quant type."""
    from localrun.backends.registry import usual_backend

    backend = usual_backend()
    qtypes = dict.fromkeys(t.qtype for t in source.tensors.values() if len(t.shape) >= 2)
    return {qtype: backend.layout_name(qtype) or "reference" for qtype in qtypes}


def _architecture(source: ModelFile) -> str | None:
    if isinstance(source, GgufFile):
        return source.metadata.get("general.architecture")
    declared = source.metadata.get("architectures")
    return str(declared[0]) if isinstance(declared, list) and declared else source.metadata.get("model_type")


def _chat_template(source: ModelFile) -> str | None:
    templates = gguf_templates(source.metadata) if isinstance(source, GgufFile) else source.chat_templates
    return templates.get("default")


def _tokenizer(source: ModelFile) -> str | None:
    if isinstance(source, GgufFile):
        parts = (source.metadata.get(f"tokenizer.ggml.{key}") for key in ("model", "pre"))
        return "/".join(str(part) for part in parts if part) or None
    return Path(source.tokenizer_json).name if source.tokenizer_json else None


def _listed(form: str, shown: Callable[[Any], object] = str) -> Callable[[Mapping[str, Any]], str]:
    """Words for an object: its keys and values in `form`, one after the other."""
    return lambda values: ", ".join(form.format(key, shown(value)) for key, value in values.items())


def _precision_words(precision: str) -> str:
    return f"{precision}, extreme: answers get visibly worse" if precision and is_extreme(precision) else precision


_WORDS: Mapping[str, Callable[[Any], str]] = {  # of fields whose value does not speak for itself
    "precision": _precision_words,
    "bytes": gib,
    "state_bytes": gib,
    "precisions": _listed("{} {}", gib),
    "held_bytes": _listed("{} {}", gib),
    "mappable_bytes": _listed("{} {}", gib),
    "verdict": _listed("{} {}"),
    "images": cost_words,
    "n_params": count,
    "drafts": lambda _: "by a layer of its own (MTP)",
    "layouts": _listed("{} as {}"),
    "kv_bytes_per_token": _listed("{} {:,} B", int),
}
_counted = _listed("{} × {}")


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in _WORDS:
        return _WORDS[name](value)
    return _counted(value) if isinstance(value, dict) else str(value)
