"""Models in Ollama's form: those on disk, one in detail, and the loaded one."""

import hashlib
import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.request import Json
from localrun.base.units import count
from localrun.client.choice import ModelChoice
from localrun.formats.chat_templates import gguf_templates
from localrun.formats.detect import open_model_file
from localrun.formats.gguf import GgufFile
from localrun.formats.safetensors import SafetensorsFolder
from localrun.hub.disk.obstacles import sees_images
from localrun.hub.disk.stored import StoredModel
from localrun.model.archs import arch_of
from localrun.server.models import ModelHost, model_id
from localrun.server.refusal import Refusal
from localrun.text.own_sampling import own_sampling
from localrun.text.reasoning import reasoning_tags
from localrun.text.template import ChatTemplate

FOR_EVER = "9999-12-31T23:59:59Z"
_BLOB = re.compile(r"(?:sha256-)?([0-9a-f]{64})")  # as the caches of the hub and of Ollama name files


@dataclass(frozen=True, slots=True)
class Shape:
    """Family, parameters and context of a file, and what its templates can do; empty where it cannot be read."""

    arch: str = ""
    n_params: int = 0
    ctx: int = 0
    capabilities: tuple[str, ...] = ()


def tags(models: ModelHost) -> Json:
    """Every model on disk, by all its names. Reads the disk."""
    listed = models.listed()
    named = [{**_row(stored, listed), "name": name, "model": name} for name, stored in models.aliases().items()]
    return {"models": [*(_row(stored, listed) for stored in listed), *named]}


def ps(models: ModelHost) -> Json:
    """The model that is loaded."""
    info, choice = models.slot.info, models.slot.choice
    if models.slot.client is None or info is None or choice is None or not isinstance(choice.stored, StoredModel):
        return {"models": []}
    on_gpu = info.backend not in ("cpu", "reference")
    until = models.unload_at if models.unload_at is not None else math.inf
    row = {
        **_row(choice.stored, models.listed()),
        "size": info.weights_bytes,
        "size_vram": info.weights_bytes if on_gpu else 0,
        "context_length": info.ctx,
        "expires_at": _time(until) if until < time.time() + 1e9 else FOR_EVER,
    }
    return {"models": [row]}


def show(choice: ModelChoice) -> Json:
    """Details of one model. Reads its header. Raises LocalrunError."""
    stored = choice.stored
    if not isinstance(stored, StoredModel):
        raise Refusal(404, "that model is not on this machine", "model_not_found", "model")
    source = open_model_file(stored.path)
    template = _templates(source).get("default", "")
    sampling = asdict(own_sampling(source))
    return {
        "modified_at": _modified(stored.path),
        "details": _details(stored),
        "model_info": _model_info(source, _shape(stored)),
        "capabilities": _capabilities(stored),
        "template": template,
        "parameters": "\n".join(f"{name:<30} {value}" for name, value in sampling.items() if value),
    }


def _row(stored: StoredModel, listed: list[StoredModel]) -> Json:
    name = model_id(stored, listed)
    return {
        "name": name,
        "model": name,
        "modified_at": _modified(stored.path),
        "size": stored.bytes,
        "digest": _digest(stored),
        "details": _details(stored),
        "capabilities": _capabilities(stored),
    }


def _details(stored: StoredModel) -> Json:
    shape = _shape(stored)
    return {
        "parent_model": "",
        "format": stored.format,
        "family": shape.arch,
        "families": [shape.arch] if shape.arch else [],
        "parameter_size": count(shape.n_params).replace(" ", "") if shape.n_params else "",
        "quantization_level": stored.precision,
        "context_length": shape.ctx,
    }


def _shape(stored: StoredModel) -> Shape:
    try:
        return _shape_of(stored.path, stored.path.stat().st_mtime_ns, stored.bytes)
    except OSError:
        return Shape()


@lru_cache(maxsize=512)
def _shape_of(path: Path, changed_ns: int, nbytes: int) -> Shape:
    """Details of a file, cached until it changes: a header with a large vocabulary takes a while."""
    with suppress(LocalrunError):
        source = open_model_file(path)
        key = "general.architecture" if isinstance(source, GgufFile) else "model_type"
        found = _of_templates(_templates(source))
        return Shape(str(source.metadata.get(key) or ""), source.n_params, _context(source), found)
    return Shape()


def _templates(source: GgufFile | SafetensorsFolder) -> Mapping[str, str]:
    return gguf_templates(source.metadata) if isinstance(source, GgufFile) else source.chat_templates


def _context(source: GgufFile | SafetensorsFolder) -> int:
    with suppress(LocalrunError):
        return arch_of(source).config(source).max_context
    return 0


def _model_info(source: GgufFile | SafetensorsFolder, shape: Shape) -> Json:
    """Metadata of a GGUF, without lists and templates; of other models the same keys, as far as known."""
    info: Json = {"general.architecture": shape.arch, "general.parameter_count": shape.n_params}
    if isinstance(source, GgufFile):
        return info | {key: value for key, value in source.metadata.items() if _is_shown(key, value)}
    with suppress(LocalrunError):
        config = arch_of(source).config(source)
        info[f"{shape.arch}.context_length"] = config.max_context
        info[f"{shape.arch}.embedding_length"] = config.hidden_size
        info[f"{shape.arch}.block_count"] = config.n_layers
        info[f"{shape.arch}.vocab_size"] = config.vocab_size
    return info


def _is_shown(key: str, value: Any) -> bool:
    is_plain = isinstance(value, str | int | bool) or (isinstance(value, float) and math.isfinite(value))
    return is_plain and "chat_template" not in key


def _sees(stored: StoredModel) -> bool:
    """Whether a model sees images, looked up again where its file or its folder has changed."""
    with suppress(OSError):
        return _sees_as_of(stored, stored.path.stat().st_mtime_ns, stored.path.parent.stat().st_mtime_ns)
    return False


@lru_cache(maxsize=512)
def _sees_as_of(stored: StoredModel, changed_ns: int, folder_changed_ns: int) -> bool:
    return sees_images(stored)


def _capabilities(stored: StoredModel) -> list[str]:
    return ["completion", *["vision"] * _sees(stored), *_shape(stored).capabilities]


def _of_templates(templates: Mapping[str, str]) -> tuple[str, ...]:
    found = []
    with suppress(LocalrunError):
        if "tool_use" in templates or ChatTemplate(templates.get("default")).capabilities.tools:
            found.append("tools")
    if any(reasoning_tags(template) for template in templates.values()):
        found.append("thinking")
    return tuple(found)


def _digest(stored: StoredModel) -> str:
    """The sha256 of a file where its cache names it so, else a hash of name, size and time, which changes with it."""
    with suppress(OSError):
        path = stored.path.resolve()
        if blob := _BLOB.fullmatch(path.name):
            return blob[1]
        identity = f"{path}:{stored.precision}:{stored.bytes}:{path.stat().st_mtime_ns}"
        return hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()
    return "0" * 64


def _modified(path: Path) -> str:
    with suppress(OSError):
        return _time(path.stat().st_mtime)
    return _time(0.0)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
