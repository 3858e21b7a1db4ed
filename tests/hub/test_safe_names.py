"""Forty names that would like to be somewhere else on the disk, and those that real repositories have."""

import pytest

from localrun.hub.safe_names import is_commit, is_etag, is_file, is_repo

HOSTILE_FILES = [
    *("..", "../x.gguf", "a/../../x.gguf", "/etc/passwd", "//host/share", "\\\\host\\share\\x", "..\\x.gguf"),
    *("C:\\x.gguf", "C:x.gguf", "c:/x.gguf", "a/./b", "./a", "a//b", "a/", "", ".", "a\0b", "a\nb", "a\x1b]0;x\x07"),
    *("a\u202egguf.exe", "x.gguf:stream", "con", "CON.gguf", "sub/nul.txt", "com1", "lpt9.gguf", "x.gguf.", "x "),
    *("~/../x?", "a*b", "a|b", "<a>", 'a"b', "x" * 300, "/".join(["d"] * 600), "\ud800.gguf", "aux/x.gguf", "CONIN$"),
]
HOSTILE_REPOS = [
    *("../x", "x/..", "a/b/c", "a", "", "a/", "/b", "a--b/c", "a/b--c", "a/b.git", ".a/b", "a/.b", "a b/c", "a/b\n"),
    *("a/b?x=1", "a/b#f", "a/b%2e%2e", "é/b", "a\\b/c", "-a/b", "a/" + "b" * 100, "a/b.", "http://a/b", "a@b/c"),
]


@pytest.mark.parametrize("path", HOSTILE_FILES, ids=ascii)
def test_hostile_files(path: str) -> None:
    assert not is_file(path)


@pytest.mark.parametrize("name", HOSTILE_REPOS, ids=ascii)
def test_hostile_repositories(name: str) -> None:
    assert not is_repo(name)


def test_real_names() -> None:
    assert all(map(is_repo, ["Qwen/Qwen3-4B-GGUF", "ggml-org/gemma-3-1b-it-GGUF", "a/b", "TheBloke/x_y.z-1.0"]))
    files = ["Qwen3-4B-Q4_K_M.gguf", "BF16/big-00001-of-00002.gguf", ".gitattributes", "a b.txt", "模型.gguf", "..a"]
    assert all(map(is_file, files))


def test_hashes() -> None:
    assert is_etag("0" * 40)
    assert is_etag("f" * 64)
    assert not any(map(is_etag, ["0" * 39, "F" * 64, "../" + "0" * 37, "", "0" * 41, "0" * 40 + "\n"]))
    assert is_commit("0" * 40)
    assert not is_commit("0" * 64)
