"""Files are told apart by their content, and a wrong one is named for what it is."""

import os
import re
import socket
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.file_opener import FileOpener
from localrun_testing.raw_files import ARCH, Entry, gguf_file, safetensors_file, tensor

from localrun.base.errors import LocalrunError, ModelFileError, NotFoundError
from localrun.formats.detect import open_model_file
from localrun.formats.gguf import GgufFile, open_gguf
from localrun.formats.safetensors import SafetensorsFolder, open_safetensors

GGUF = gguf_file([ARCH], [tensor("a")], bytes(128))
SAFETENSORS = safetensors_file({"a": Entry()}, bytes(8))


@pytest.mark.parametrize("name", ["model.gguf", "model.safetensors", "model.bin", "no-extension"])
def test_the_name_does_not_matter(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(GGUF)
    assert isinstance(open_model_file(path), GgufFile)
    path.write_bytes(SAFETENSORS)
    model = open_model_file(str(path))
    assert isinstance(model, SafetensorsFolder)
    assert set(model.tensors) == {"a"}


def test_a_folder_opens_by_what_it_contains(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("hello")
    with pytest.raises(NotFoundError):
        open_model_file(tmp_path)
    (tmp_path / "m.gguf").write_bytes(GGUF)
    assert open_model_file(tmp_path).path == tmp_path / "m.gguf"
    (tmp_path / "n.gguf").write_bytes(GGUF)
    with pytest.raises(ModelFileError, match="2 GGUF models") as caught:
        open_model_file(tmp_path)
    assert caught.value.code == "AMBIGUOUS"
    (tmp_path / "model.safetensors").write_bytes(SAFETENSORS)
    assert open_model_file(tmp_path).format == "safetensors"


def test_a_folder_of_shards_opens(tmp_path: Path) -> None:
    from tools.gguf_write import Encoded, write_gguf

    tensors = {name: Encoded("F32", (32,), bytes(128)) for name in "abc"}
    write_gguf(tmp_path / "m.gguf", {"general.architecture": "llama"}, tensors, split_max_tensors=1)
    assert set(open_model_file(tmp_path).tensors) == {"a", "b", "c"}


def zip_bytes(path: Path) -> bytes:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
    return path.read_bytes()


def tar_bytes(path: Path) -> bytes:
    path.with_suffix(".txt").write_text("hello")
    with tarfile.open(path, "w") as archive:
        archive.add(path.with_suffix(".txt"))
    return path.read_bytes()


WRONG = {
    "an empty file": b"",
    "a Python pickle": b"\x80\x04\x95\x1a\0\0\0\0\0\0\0\x8c\x05posix\x94.",
    "an old .bin": b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.",
    "GGML file": b"tjgg\3\0\0\0" + bytes(64),
    "web page": b"\n<html><head><title>502 Bad Gateway</title>",
    "git-lfs pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "JSON text": b'{"model_type": "llama"}',
    "gzip": b"\x1f\x8b\x08" + bytes(64),
    "zstd": b"\x28\xb5\x2f\xfd" + bytes(64),
    "7z": b"7z\xbc\xaf\x27\x1c" + bytes(64),
    "NumPy": b"\x93NUMPY\1\0" + bytes(64),
    "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(64),
    "program": b"\x7fELF\2\1\1" + bytes(64),
    "zeros": bytes(100_000),
    "neither GGUF nor safetensors": b"hello, world",
    "big-endian": b"FUGG\0\0\0\3" + bytes(64),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_files_are_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(WRONG[kind])
    for opener in (open_model_file, open_gguf, open_safetensors):
        with pytest.raises(ModelFileError) as caught:
            opener(path)
        if opener is not open_safetensors or len(WRONG[kind]) > 8:
            assert kind in caught.value.message
        assert caught.value.hint


def test_archives_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(zip_bytes(tmp_path / "x.zip"))
    with pytest.raises(ModelFileError, match="zip archive") as caught:
        open_model_file(path)
    assert caught.value.code == "PICKLE"
    assert "run code" in caught.value.hint
    path.write_bytes(tar_bytes(tmp_path / "x.tar"))
    with pytest.raises(ModelFileError, match="tar archive"):
        open_model_file(path)


def test_one_container_given_to_the_other_opener(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(SAFETENSORS)
    with pytest.raises(ModelFileError, match="this is a safetensors file, not a GGUF file"):
        open_gguf(tmp_path / "a")
    (tmp_path / "a").write_bytes(GGUF)
    with pytest.raises(ModelFileError, match="this is a GGUF file, not a safetensors file"):
        open_safetensors(tmp_path / "a")


@pytest.mark.parametrize("opener", [open_model_file, open_gguf, open_safetensors])
def test_missing_paths(opener: object, tmp_path: Path) -> None:
    assert callable(opener)
    (tmp_path / "file").write_bytes(GGUF)
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    for path in (tmp_path / "nothing", tmp_path / "file" / "x", tmp_path / "dangling", "nul\0byte", ""):
        with pytest.raises(LocalrunError) as caught:
            opener(path)
        assert type(caught.value) in ((NotFoundError, ModelFileError) if path == "" else (NotFoundError,))
        assert caught.value.message.isprintable()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop", tmp_path / ("x" * 300), tmp_path / "x" / ("y/" * 3000)):
        with pytest.raises(LocalrunError):
            opener(path)


def test_pipes_sockets_and_devices_are_refused_at_once(tmp_path: Path, opener: FileOpener) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", tmp_path / "socket", Path("/dev/zero"), Path("/dev/null"), Path("/dev/tty")):
            for kind in ("any", "gguf", "safetensors"):
                outcome = opener.open(path, kind)
                assert outcome.code == "NOT_A_FILE", outcome
                assert outcome.seconds < 1


def folder_with_pipe(name: str, tmp_path: Path) -> Path:
    folder = tmp_path / name.replace(".", "-")
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}")
    os.mkfifo(folder / name)
    return folder


def test_pipes_inside_a_model_folder_are_refused_at_once(tmp_path: Path, opener: FileOpener) -> None:
    for name in ("config.json", "model.safetensors", "model.safetensors.index.json"):
        folder = folder_with_pipe(name, tmp_path)
        opener.assert_refused("NOT_A_FILE", folder / name if name == "model.safetensors" else folder, "safetensors")


def test_a_pipe_in_place_of_an_optional_file_is_told_of_at_once(tmp_path: Path, opener: FileOpener) -> None:
    outcome = opener.open(folder_with_pipe("chat_template.jinja", tmp_path), "safetensors")
    assert outcome.code == "opened", outcome
    assert "chat_template.jinja: this is a pipe, not a file" in outcome.message
    assert outcome.seconds < 1


def test_a_folder_where_a_file_should_be(tmp_path: Path, opener: FileOpener) -> None:
    (tmp_path / "config.json").mkdir()
    assert opener.open(tmp_path, "any").code == "NOT_A_FILE"
    assert opener.open(tmp_path, "gguf").code == "NOT_A_FILE"


def test_unreadable_files_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal of the system is played."""
    path = tmp_path / "m.gguf"
    path.write_bytes(GGUF)

    def denied(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    monkeypatch.setattr(os, "listdir", denied)
    for opener, target in ((open_gguf, path), (open_model_file, path), (open_model_file, tmp_path)):
        with pytest.raises(ModelFileError, match="Permission denied") as caught:
            opener(target)
        assert caught.value.code == "UNREADABLE"
    assert stat.S_ISREG(path.stat().st_mode)


def test_a_disk_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(GGUF)

    class Failing:
        def __init__(self, file: object) -> None:
            self._file = file

        def __getattr__(self, name: str) -> object:
            return getattr(self._file, name)

        def __enter__(self) -> "Failing":
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()  # type: ignore[attr-defined]

        def readinto(self, _: object) -> int:
            raise OSError(5, "Input/output error")

    original = os.fdopen
    monkeypatch.setattr(os, "fdopen", lambda *args, **options: Failing(original(*args, **options)))
    with pytest.raises(ModelFileError, match="Input/output error"):
        open_gguf(path)


def test_messages_carry_no_control_characters_of_the_path(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b]0;owned\x07\n.gguf"
    with pytest.raises(NotFoundError) as missing:
        open_gguf(path)
    path.write_bytes(b"hello")
    with pytest.raises(ModelFileError) as bad:
        open_gguf(path)
    assert missing.value.message.isprintable()
    assert bad.value.message.isprintable()


def test_no_code_of_ours_unpickles() -> None:
    sources = [path for room in ("localrun", "tui") for path in (REPOSITORY / room).rglob("*.py")]
    assert len(sources) > 20
    forbidden = re.compile(r"\b(import|from)\s+(_?pickle|shelve|dill|joblib)\b|\bpickle\.loads?\b|torch\.load\b")
    found = [str(path) for path in sources if forbidden.search(path.read_text(encoding="utf-8"))]
    assert not found, "pickled data can run code when it is loaded"
