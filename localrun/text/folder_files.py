"""The small JSON files beside a tokenizer.json: BOS, EOS and the tokens that end an answer."""

from pathlib import Path
from typing import Any

from localrun.formats.json_files import read_json, read_object, read_optional


class FolderFiles:
    """The JSON files of one folder about its tokens; any may be missing.

    special_tokens_map.json, added_tokens.json and generation_config.json are optional. An unreadable one of the first
    two becomes a note; the code that opens the folder reports the last one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes: list[str] = []
        self.tokenizer_config, self.config = map(self._required, ("tokenizer_config.json", "config.json"))
        self.generation_config = read_object(folder / "generation_config.json")
        self.special_tokens_map = read_optional(folder / "special_tokens_map.json", self.notes)
        self.added_tokens = read_optional(folder / "added_tokens.json", self.notes)

    def token(self, role: str) -> str | None:
        """Text of `bos_token`, `eos_token` …; special_tokens_map.json is the older place for them."""
        sources = [self.tokenizer_config, self.special_tokens_map]
        if "added_tokens_decoder" not in self.tokenizer_config:
            sources.reverse()
        values = [source.get(role) for source in sources]
        texts = [value.get("content") if isinstance(value, dict) else value for value in values]
        return next((text for text in texts if isinstance(text, str) and text), None)

    @property
    def vocab_size(self) -> int | None:
        """Number of tokens that the weights have rows for; None where config.json does not say."""
        for source in (self.config, self.config.get("text_config")):
            size = source.get("vocab_size") if isinstance(source, dict) else None
            if type(size) is int and size > 0:
                return size
        return None

    def _required(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        return read_json(path, "BAD_CONFIG") if path.is_file() else {}

    def ids(self, key: str) -> list[int]:
        """Ids of `bos_token_id` or `eos_token_id`, which may be a list; generation_config.json comes first."""
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
    """The tokens that a tokenizer.json puts before and after a text: (BOS, EOS), each a text or None."""
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
