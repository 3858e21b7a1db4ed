"""Models that other programs downloaded: used in place, never copied and never removed."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from localrun.formats.json_files import read_object
from localrun.hub.disk.model_files import entries
from localrun.hub.disk.stored import StoredModel, folders_below, ggufs_in, ggufs_of_repo, safetensors_in

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_MODEL_LAYER = "application/vnd.ollama.image.model"


def lm_studio_models(environ: Mapping[str, str] = os.environ) -> Iterator[StoredModel]:
    """Models of LM Studio: models/publisher/repository in its home folder, as GGUF or MLX safetensors."""
    home = Path(os.path.expanduser("~"))
    roots = (home / ".cache" / "lm-studio" / "models", home / ".lmstudio" / "models")
    for root in {os.path.realpath(root): root for root in roots}.values():  # the old one is often a link to the new
        for place in folders_below(root, 2):
            parts = place.relative_to(root).parts
            if len(parts) != 2:
                yield from ggufs_in(place, "lmstudio")
                continue
            repo = "/".join(parts)
            whole = list(safetensors_in(place, "lmstudio", repo))
            yield from (*whole, *ggufs_of_repo([place], "lmstudio", repo, beside_weights=bool(whole)))


def ollama_models(environ: Mapping[str, str] = os.environ) -> Iterator[StoredModel]:
    """Models of Ollama: manifests/registry/namespace/name/tag name blobs, which are GGUF files named by hash."""
    root = Path(os.path.expanduser(environ.get("OLLAMA_MODELS") or "~/.ollama/models"))
    manifests = root / "manifests"
    for place in folders_below(manifests, 3):
        parts = place.relative_to(manifests).parts
        if len(parts) == 3:
            for manifest in entries(place):
                namespace = "" if parts[1] == "library" else f"{parts[1]}/"
                yield from _ollama_model(
                    root / "blobs", read_object(manifest), f"{namespace}{parts[2]}:{manifest.name}"
                )


def _ollama_model(blobs: Path, manifest: dict[str, Any], name: str) -> Iterator[StoredModel]:
    layers = manifest.get("layers")
    for layer in layers if isinstance(layers, list) else ():
        if isinstance(layer, dict) and layer.get("mediaType") == _MODEL_LAYER:
            blob = _blob(blobs, layer)
            config = _blob(blobs, manifest.get("config"))
            about = read_object(config) if config else {}
            if blob is not None and about.get("model_format", "gguf") == "gguf":
                precision = about.get("file_type")
                known = precision if isinstance(precision, str) and precision.isprintable() else ""
                yield StoredModel(name, known[:24], blob, blob.stat().st_size, "gguf", "ollama")


def _blob(blobs: Path, entry: Any) -> Path | None:
    """The blob of a manifest entry, found by its hash alone; None where it does not exist."""
    match = _DIGEST.fullmatch(str(entry.get("digest"))) if isinstance(entry, dict) else None
    path = blobs / f"sha256-{match[1]}" if match else None
    return path if path is not None and path.is_file() else None
