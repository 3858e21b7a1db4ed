"""`localrun show` of an adapter: the matrices it changes, and by how much."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

from localrun.base.units import gib
from localrun.cli.console import write_json, write_table
from localrun.formats.adapters.adapter_file import AdapterFile
from localrun.formats.adapters.detect import is_adapter, open_adapter

_LAYER = re.compile(r"^(?:layers|blk)\.\d+\.|\.weight$")


def adapter_fields(file: AdapterFile) -> dict[str, Any]:
    """The fields of `show --json` for an adapter.

    `adapts`: number of layers in which each kind of matrix is changed.
    """
    matrices = Counter(_LAYER.sub("", weight) for weight in file.pairs)
    return {
        "name": file.path.stem,
        "path": str(file.path),
        "format": file.format,
        "bytes": file.nbytes,
        "arch": file.arch or None,
        "base": file.base or None,
        "ranks": list(file.ranks),
        "scales": sorted({pair.scale for pair in file.pairs.values()}),
        "adapts": dict(matrices.most_common()),
        "sha256": file.sha256,
    }


def show_adapter(path: Path, json: bool) -> int:
    """Show what is in an adapter. Raises ModelFileError for one that no model can apply."""
    fields = adapter_fields(open_adapter(path))
    if json:
        write_json(fields)
    else:
        write_table([(name, shown(name, value)) for name, value in fields.items()])
    return 0


def shown(name: str, value: Any) -> str:
    """Format a field for a person."""
    if value is None:
        return "-"
    if name == "bytes":
        return gib(value)
    if isinstance(value, dict):
        return ", ".join(f"{key} × {n}" for key, n in value.items())
    return ", ".join(f"{one:g}" for one in value) if isinstance(value, list) else str(value)


def adapter_path(named: str | None) -> Path | None:
    """Path of an existing adapter; None where `named` is something else."""
    path = Path(named or "").expanduser()
    return path if named and is_adapter(path) else None
