"""The text side of a model from its files, with or without weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localrun.base.request import Sampling
from localrun.formats.chat_templates import folder_templates, gguf_templates, spare_template
from localrun.formats.json_files import read_optional
from localrun.formats.metadata import Metadata
from localrun.formats.safetensors import SafetensorsFolder
from localrun.formats.source import TensorSource
from localrun.text.model_text import ModelText
from localrun.text.own_sampling import own_sampling
from localrun.text.reasoning import reasoning_tags
from localrun.text.template import ChatTemplate, default_template
from localrun.text.tokenizer import Tokenizer, tokenizer_from_folder, tokenizer_from_gguf

_NO_TEMPLATE = (
    "the model brings no chat template: it may be a base model, which continues a text rather than answers "
    "(`localrun run --raw`); in a chat it gets ChatML, which it may not have been trained on"
)


def load_text(source: TensorSource) -> ModelText:
    """Load tokenizer and template of an opened model. Raises ModelFileError."""
    if isinstance(source, SafetensorsFolder):
        tokenizer = tokenizer_from_folder(source.folder)
        return _text(tokenizer, source.chat_templates, source.spare_template, own_sampling(source))
    tokenizer = tokenizer_from_gguf(source.metadata, source.path)
    return _text(tokenizer, gguf_templates(source.metadata), None, own_sampling(source))


def load_folder_text(folder: Path) -> ModelText:
    """Likewise of a folder with a tokenizer.json, which needs no weights; its settings are not read."""
    notes: list[str] = []
    path = folder / "tokenizer_config.json"
    config = Metadata(read_optional(path, notes), path)
    templates = folder_templates(folder, config, notes)
    return _text(tokenizer_from_folder(folder), templates, spare_template(folder, config), Sampling())


def _text(tokenizer: Tokenizer, templates: Mapping[str, str], spare: str | None, sampling: Sampling) -> ModelText:
    notes = list(tokenizer.vocabulary.notes)
    if not templates:
        notes.append(_NO_TEMPLATE)
    template = _template(tokenizer, templates, spare)
    template.warm_up()
    usual_first = sorted(templates, key=lambda name: name != "default")
    tags = next(filter(None, (reasoning_tags(templates[name]) for name in usual_first)), None)
    return ModelText(tokenizer, template, tags, sampling, tuple(notes))


def _template(tokenizer: Tokenizer, templates: Mapping[str, str], spare: str | None) -> ChatTemplate:
    """The default template of a model, with those that may replace it."""
    if not templates:
        return default_template()

    def made(source: str | None, **more: Any) -> ChatTemplate:
        return ChatTemplate(source, tokenizer.bos_token, tokenizer.eos_token, **more)

    tool_use = made(templates["tool_use"]) if "tool_use" in templates else None
    return made(
        templates.get("default"),
        tool_use=tool_use,
        spare=None if spare is None else made(spare) if spare else default_template(),
        others=sorted(templates),
    )
