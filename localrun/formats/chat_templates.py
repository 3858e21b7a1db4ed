"""The chat templates of a model, by name: `default`, and `tool_use` for chats with tools."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localrun.base.errors import ModelFileError
from localrun.formats.files import bad_file, list_folder, read_small
from localrun.formats.json_files import left_out, read_optional
from localrun.formats.metadata import Metadata

MAX_TEMPLATE_BYTES = 1 << 20
OWN_FILE = "chat_template.jinja"
MORE_TEMPLATES = "additional_chat_templates"
_GGUF_KEY = "tokenizer.chat_template"
_MOST = 64  # templates in a folder


def folder_templates(folder: Path, tokenizer_config: Metadata, notes: list[str]) -> dict[str, str]:
    """Templates of a model folder.

    As in transformers, template files override all of tokenizer_config.json, except its default template where they
    have none. An unreadable file becomes a note.
    """
    listed = _listed(tokenizer_config.get("chat_template"), tokenizer_config.path)
    if "default" not in listed:
        listed |= _of_processor(folder / "chat_template.json", notes)
    files = {path.stem: text for path in _more(folder / MORE_TEMPLATES) if (text := _read(path, notes))}
    if usual := _read(folder / OWN_FILE, notes):
        files["default"] = usual
    if not files:
        return listed
    return files if "default" in files or "default" not in listed else {"default": listed["default"], **files}


def spare_template(folder: Path, tokenizer_config: Metadata) -> str | None:
    """The template a folder would use without its template file; empty for none. None without such a file."""
    if not (folder / OWN_FILE).is_file():
        return None
    return _listed(tokenizer_config.get("chat_template"), tokenizer_config.path).get("default", "")


def gguf_templates(metadata: Metadata) -> dict[str, str]:
    """Templates of a GGUF file. Raises ModelFileError BAD_TEMPLATE for one that is not a text."""
    templates = {}
    for key, value in metadata.items():
        if key == _GGUF_KEY or key.startswith(f"{_GGUF_KEY}."):
            if not isinstance(value, str):
                raise bad_file("BAD_TEMPLATE", "the chat template is not a text", metadata.path)
            templates[key.removeprefix(_GGUF_KEY)[1:] or "default"] = value
    return templates


def _more(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [folder / name for name in list_folder(folder) if name.endswith(".jinja")][:_MOST]


def _read(path: Path, notes: list[str]) -> str:
    """Text of a template file; empty where there is no usable one."""
    if not path.exists():
        return ""
    try:
        text = read_small(path, MAX_TEMPLATE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text, problem = "", f"{path}: it is not UTF-8 text (at byte {error.start:,})"
    except ModelFileError as error:
        text, problem = "", error.message
    else:
        problem = "" if text.strip() else f"{path}: it is empty"
    if problem:
        notes.append(left_out(problem))
    return text if not problem else ""


def _of_processor(path: Path, notes: list[str]) -> dict[str, str]:
    """The default template in chat_template.json, where image processors keep it."""
    value = read_optional(path, notes).get("chat_template")
    try:
        return {name: text for name, text in _listed(value, path).items() if name == "default"}
    except ModelFileError as error:
        notes.append(left_out(error.message))
        return {}


def _listed(value: Any, path: Path) -> dict[str, str]:
    """One template, a list of named ones, or a map of names to texts."""
    if value is None:
        return {}
    try:
        if isinstance(value, Mapping):
            templates = dict(value)
        else:
            named = [{"name": "default", "template": value}] if isinstance(value, str) else value
            templates = {entry["name"]: entry["template"] for entry in named}
    except (TypeError, KeyError):
        templates = {"": None}
    if not all(type(text) is str for pair in templates.items() for text in pair):
        raise bad_file("BAD_CONFIG", "chat_template is neither a text nor named texts", path)
    return templates
