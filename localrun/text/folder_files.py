"""The small JSON files beside a tokenizer.json, and what they say about BOS, EOS and the end of an answer."""

from pathlib import Path
from typing import Any

from localrun.formats.json_files import read_json

_NAMES = ("tokenizer_config.json", "generation_config.json", "config.json")


class FolderFiles:
    """tokenizer_config.json, generation_config.json and config.json of one folder; any may be missing."""

    def __init__(self, folder: Path) -> None:
        paths = {name: folder / name for name in _NAMES}
        found = {name: read_json(path, "BAD_CONFIG") for name, path in paths.items() if path.is_file()}
        self.tokenizer_config, self.generation_config, self.config = (found.get(name, {}) for name in _NAMES)

    def token(self, role: str) -> str | None:
        """The text of `bos_token`, `eos_token` …"""
        value = self.tokenizer_config.get(role)
        value = value.get("content") if isinstance(value, dict) else value
        return value if isinstance(value, str) and value else None

    def ids(self, key: str) -> list[int]:
        """`bos_token_id` or `eos_token_id`, which may be a list; generation_config.json goes first."""
        for source in (self.generation_config, self.config):
            value = source.get(key)
            ids: list[Any] = value if isinstance(value, list) else [value]
            if ids and all(type(i) is int for i in ids):
                return ids
        return []

    def flag(self, key: str) -> bool | None:
        value = self.tokenizer_config.get(key)
        return value if isinstance(value, bool) else None


def added_around(post_processor: Any) -> tuple[str | None, str | None]:
    """The tokens a tokenizer.json puts before and after a text: (BOS, EOS), each a text or None."""
    if not isinstance(post_processor, dict):
        return None, None
    kind = post_processor.get("type")
    if kind == "Sequence" and isinstance(inner := post_processor.get("processors"), list):
        found = [added_around(processor) for processor in inner]
        return next((b for b, _ in found if b), None), next((e for _, e in found if e), None)
    if kind in ("BertProcessing", "RobertaProcessing"):
        pairs = (post_processor.get("cls"), post_processor.get("sep"))
        first, last = (str(pair[0]) if isinstance(pair, list) and pair else None for pair in pairs)
        return first, last
    if kind == "TemplateProcessing" and isinstance(template := post_processor.get("single"), list) and template:
        return _special(template[0]), _special(template[-1])
    return None, None


def _special(item: Any) -> str | None:
    special = item.get("SpecialToken") if isinstance(item, dict) else None
    name = special.get("id") if isinstance(special, dict) else None
    return name if isinstance(name, str) else None
