"""Several chat templates in a model: which is rendered, as in transformers, and what is said of those that are not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFWriter
from localrun_testing.vocabularies import byte_level, small_bpe, tokenizer_json

from localrun.base.errors import ModelFileError, UsageError
from localrun.base.request import Request
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.text.load_text import load_text
from localrun.text.model_text import ModelText
from localrun.text.template import CHATML

PLAIN = "{% for m in messages %}{{ m.content }}{% endfor %}"
WITH_TOOLS = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}" + PLAIN
HI = [{"role": "user", "content": "b"}]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]
BOTH = [{"name": "default", "template": PLAIN}, {"name": "tool_use", "template": WITH_TOOLS}]
SPECIAL = {"id": 3, "content": "<x>", "special": True, "normalized": False}
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False}
MORE = "additional_chat_templates"
Files = dict[str, str]

FOLDERS: dict[str, tuple[Any, Files]] = {
    "one": (PLAIN, {}),
    "one that knows tools": (WITH_TOOLS, {}),
    "a list": (BOTH, {}),
    "a map": ({entry["name"]: entry["template"] for entry in BOTH}, {}),
    "files": (None, {"chat_template.jinja": PLAIN, f"{MORE}/tool_use.jinja": WITH_TOOLS, f"{MORE}/rag.jinja": "b"}),
    "its own file hides a list": (BOTH, {"chat_template.jinja": "b" + PLAIN}),
    "no usual one": ([{"name": "tool_use", "template": WITH_TOOLS}], {}),
    "neither": ([{"name": "rag", "template": PLAIN}], {}),
}


def write(folder: Path, listed: Any, files: Files) -> Path:
    content = small_bpe(added_tokens=[SPECIAL | FLAGS])
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": listed}
    tokenizer_json(folder, content, tokenizer_config={k: v for k, v in config.items() if v is not None}, config={})
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def opened(folder: Path) -> ModelText:
    return load_text(open_safetensors(folder))


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["no tools", "tools"])
@pytest.mark.parametrize("name", FOLDERS)
def test_the_one_that_transformers_renders(name: str, tools: list[dict[str, Any]] | None, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = write(tmp_path, *FOLDERS[name])
    theirs = AutoTokenizer.from_pretrained(folder)
    text, request = opened(folder), Request(messages=tuple(HI), tools=tuple(tools or ()))
    try:
        expected = theirs.apply_chat_template(HI, tools=tools, tokenize=False)
    except ValueError:
        with pytest.raises(ModelFileError, match="no usual chat template, only"):
            text.prepare(request)
        return
    assert text.template.render(HI, tools=tools) == expected
    prompt = text.prepare(request)
    vanish = bool(tools) and expected in ("b", "bb")
    assert (prompt.ids == theirs.encode(expected, add_special_tokens=False)) != vanish
    assert any("no place for tools" in note for note in prompt.notes) == vanish, "they are described in a message"


@pytest.mark.parametrize("tools", [(), TOOLS], ids=["no tools", "tools"])
@pytest.mark.parametrize("named", [BOTH, BOTH[1:]], ids=["both", "no usual one"])
def test_those_of_a_gguf(named: list[dict[str, str]], tools: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_chat_template(named)
    writer.add_tensor("token_embd.weight", np.zeros((2, 32), np.float32))
    for write_part in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write_part()
    writer.close()
    source = open_gguf(path)
    metadata = type(source.metadata)({**source.metadata, **byte_level()}, path)
    object.__setattr__(source, "metadata", metadata)
    text, request = load_text(source), Request(messages=tuple(HI), tools=tuple(tools))
    if not tools and named == BOTH[1:]:
        with pytest.raises(ModelFileError, match="only tool_use"):
            text.prepare(request)
        assert text.prepare(Request(prompt="hello")).ids
    else:
        assert text.prepare(request).ids == text.tokenizer.encode(json.dumps(TOOLS[0]) + "b" if tools else "b")


BROKEN = {
    "empty": b"",
    "not UTF-8": b"\xff",
    "a tag that is not closed": b"{% if messages %}b",
    "too large": b" " * (2 << 20),
}


@pytest.mark.parametrize("listed", [PLAIN, None], ids=["another", "no other"])
@pytest.mark.parametrize("how", BROKEN)
def test_a_file_that_is_broken_is_left_out(how: str, listed: str | None, tmp_path: Path) -> None:
    folder = write(tmp_path, listed, {})
    (folder / "chat_template.jinja").write_bytes(BROKEN[how])
    source = open_safetensors(folder)
    text = load_text(source)
    assert len([note for note in (*source.warnings, *text.notes) if "left out" in note]) == 1
    shown = PLAIN if listed else CHATML
    assert text.template.render(HI) == opened(write(tmp_path / "whole", shown, {})).template.render(HI)


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    folder = write(tmp_path, None, {"chat_template.jinja": "\ufeff" + PLAIN})
    assert opened(folder).template.render(HI) == "b"


def test_a_model_without_a_template_is_said_to_continue_texts(tmp_path: Path) -> None:
    (note,) = opened(write(tmp_path, None, {})).notes
    assert "continues a text rather than answers (`localrun run --raw`)" in note


def test_a_template_that_is_all_there_is_fails_when_it_is_used(tmp_path: Path) -> None:
    text = opened(write(tmp_path, "{% if", {}))
    assert text.notes == ()
    with pytest.raises(ModelFileError, match="wrong in line 1"):
        text.prepare(Request(messages=tuple(HI)))


GENERATION = {
    "a comma too many": b'{"temperature": 0.5,}',
    "empty": b"",
    "a list": b"[]",
    "not UTF-8": b'{"a": "\xff"}',
    "cut": b'{"temperature": 0.',
}


@pytest.mark.parametrize("name", ["generation_config.json", "chat_template.json"])
@pytest.mark.parametrize("how", GENERATION)
def test_other_files_that_can_be_done_without(how: str, name: str, tmp_path: Path) -> None:
    folder = write(tmp_path, None, {})
    (folder / name).write_bytes(GENERATION[how])
    source = open_safetensors(folder)
    assert [name in warning for warning in source.warnings] == [True]
    assert load_text(source).sampling.temperature is None


@pytest.mark.parametrize("content", [{}, {"chat_template": 1}, {"chat_template": {"x": 1}}])
def test_a_processor_file_without_a_template(content: dict[str, Any], tmp_path: Path) -> None:
    folder = write(tmp_path, None, {"chat_template.json": json.dumps(content)})
    source = open_safetensors(folder)
    assert (source.chat_templates, len(source.warnings)) == ({}, len(content))


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("how", GENERATION)
def test_a_file_that_a_model_needs_is_named(how: str, name: str, tmp_path: Path) -> None:
    folder = write(tmp_path, PLAIN, {})
    (folder / name).write_bytes(GENERATION[how])
    with pytest.raises(ModelFileError, match=name):
        opened(folder)


def test_a_day_of_its_own_for_every_template(tmp_path: Path) -> None:
    dated = [{"name": "tool_use", "template": "{{ strftime_now('%Y') }}"}]
    template = opened(write(tmp_path, dated, {})).template
    assert template.at(0.0).render(HI, tools=TOOLS) in ("1969", "1970")
    with pytest.raises(UsageError):
        template.at(float("nan"))


@pytest.mark.parametrize("name", ["special_tokens_map.json", "added_tokens.json", "generation_config.json"])
@pytest.mark.parametrize("kind", ["a folder", "a link that leads nowhere"])
def test_a_template_that_is_not_a_file_is_ignored(kind: str, name: str, tmp_path: Path) -> None:
    folder = write(tmp_path, PLAIN, {})
    whole = opened(folder).template.render(HI)
    (folder / name).mkdir() if kind == "a folder" else (folder / name).symlink_to("nowhere")
    assert opened(folder).template.render(HI) == whole
