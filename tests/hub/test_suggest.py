"""Names as people type them, and as other programs spell them, lead to the model that is meant."""

import hashlib
import json
import random
from itertools import pairwise
from pathlib import Path

import pytest

from localrun.base.errors import NotFoundError
from localrun.hub.catalogue import BUILTIN, read_catalogue
from localrun.hub.disk.stored import StoredModel
from localrun.hub.names import words_of
from localrun.hub.remote.preview import find_on_hub, must_find_on_hub
from localrun.hub.resolve import resolve
from localrun.hub.suggest import catalogue_name, near_names, same_names

NAMES = [name for name in read_catalogue() if name != BUILTIN]


def on_disk(*names: str) -> list[StoredModel]:
    return [StoredModel(name, "Q4_K_M", Path(f"/{name}.gguf"), 1, "gguf", "ollama") for name in names]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("llama3.2", ["llama-3.2-1b", "llama-3.2-3b"]),
        ("llama3.2:latest", ["llama-3.2-1b", "llama-3.2-3b"]),
        ("qwen3-4", ["qwen3-4b"]),
        ("gemma3", ["gemma-3-1b", "gemma-3-4b", "gemma-3-12b"]),
        ("gemma4", ["gemma-4-12b", "gemma-4-31b", "gemma-4-e2b"]),
        ("mistral", ["mistral-7b"]),
        ("mistral:7b", ["mistral-7b"]),
        ("Mistral 7B Instruct", ["mistral-7b"]),
        ("llama3.1:8b-instruct-q4_K_M", ["llama-3.1-8b"]),
        ("phi4-mini", ["phi-4-mini"]),
        ("deepseek-r1:8b", ["r1-distill-llama-8b"]),
        ("qwen3:30b-a3b", ["qwen3-30b-a3b"]),
        ("qwen2.5-coder", ["qwen2.5-coder-7b", "qwen2.5-coder-32b"]),
        ("olmo2", ["olmo-2-7b"]),
        ("mixtral", ["mixtral-8x7b"]),
        ("smollm3:3b", ["smollm3-3b"]),
        ("qwne3-4b", ["qwen3-4b"]),
    ],
)
def test_near_names_of_typed_names(asked: str, meant: list[str]) -> None:
    assert near_names(asked)[: len(meant)] == meant


@pytest.mark.parametrize("asked", ["", ":", "/", "\x1b[2J", "\0", "x" * 100_000, "-" * 5000, "日本語", "9" * 5000])
def test_unknown_names_have_no_suggestion(asked: str) -> None:
    assert same_names(asked, NAMES) == []
    assert catalogue_name(asked) == ""
    assert len(near_names(asked, on_disk("a", "b"))) <= 3


def test_models_on_disk_are_suggested_first() -> None:
    there = on_disk("llama3.2:latest", "gemma3:4b", "bartowski/Llama-3.2-3B-Instruct-GGUF")
    assert near_names("llama3", there)[0] == "llama3.2:latest"
    assert near_names("llama3.2:3b", there)[0] == "bartowski/Llama-3.2-3B-Instruct-GGUF"
    assert near_names("gemma3", there)[0] == "gemma3:4b"


def test_separators_and_case_do_not_matter() -> None:
    """Any spelling of a catalogue name is that name, and is short for no other one before it."""
    rng = random.Random(1)
    for name in NAMES * 5:
        parts = words_of(name)
        glued = parts[0] + "".join(
            ("" if part[0].isdigit() and before.isalpha() and rng.random() < 0.5 else rng.choice("-_: ")) + part
            for before, part in pairwise(parts)
        )
        spelled = "".join(rng.choice((letter.upper(), letter)) for letter in glued)
        assert catalogue_name(spelled) == name, spelled
        assert near_names(spelled)[0] == name, spelled
        assert find_on_hub(spelled) == find_on_hub(name)


def test_no_name_of_the_catalogue_is_called_like_another() -> None:
    assert len({words_of(name) for name in NAMES}) == len(NAMES)


@pytest.fixture
def ollama(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "ollama"
    monkeypatch.setenv("OLLAMA_MODELS", str(root))
    return root


def put(root: Path, name: str, content: bytes) -> None:
    digest = hashlib.sha256(content).hexdigest()
    manifest = root / "manifests/registry.ollama.ai/library" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    (root / "blobs").mkdir(exist_ok=True)
    (root / f"blobs/sha256-{digest}").write_bytes(content)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest.write_text(json.dumps({"layers": [layer]}))


def test_ollamas_names(ollama: Path) -> None:
    put(ollama, "llama3.2/latest", b"GGUF latest")
    put(ollama, "qwen3/4b", b"GGUF 4b")
    for asked in ("llama3.2", "llama-3.2", "Llama3.2:latest", "LLAMA 3.2"):
        assert resolve(asked).name == "llama3.2:latest"
    for asked in ("qwen3:4b", "qwen3-4b", "Qwen3 4B"):
        assert resolve(asked).name == "qwen3:4b"
    put(ollama, "Llama-3.2/latest", b"GGUF another")
    assert resolve("llama3.2:latest").path.read_bytes() == b"GGUF latest"
    with pytest.raises(NotFoundError) as caught:  # two are called so
        resolve("llama_3.2")
    assert "llama3.2:latest" in caught.value.hint
    with pytest.raises(NotFoundError) as caught:
        resolve("qwen3")
    assert "did you mean qwen3:4b" in caught.value.hint


def test_the_catalogue_helps_where_nothing_is_on_disk(home: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        resolve("llama3.2")
    assert "did you mean llama-3.2-1b or llama-3.2-3b" in caught.value.hint
    assert "localrun pull llama-3.2-1b" in caught.value.hint
    assert must_find_on_hub("mistral:7b").repo == must_find_on_hub("mistral-7b").repo
    assert must_find_on_hub("mistral:7b", "Q8_0").precision == "Q8_0"
    with pytest.raises(NotFoundError) as caught:
        must_find_on_hub("llama3.2")
    assert "llama-3.2-1b or llama-3.2-3b" in caught.value.hint
