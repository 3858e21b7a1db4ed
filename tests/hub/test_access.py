from pathlib import Path

import pytest

from localrun.base.errors import HubError, UsageError
from localrun.hub.network.access import HUGGING_FACE, read_access


def test_defaults(tmp_path: Path) -> None:
    access = read_access(environ={"HF_HOME": str(tmp_path)})
    assert (access.endpoint, access.token, access.offline) == (HUGGING_FACE, "", False)
    assert access.cache == tmp_path / "hub"
    assert access.warning == ""


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "LOCALRUN_OFFLINE"])
@pytest.mark.parametrize(("value", "offline"), [("1", True), ("YES", True), ("0", False), ("", False)])
def test_offline(name: str, value: str, offline: bool, tmp_path: Path) -> None:
    assert read_access(environ={name: value, "HF_HOME": str(tmp_path)}).offline is offline
    assert read_access(offline=True, environ={name: value, "HF_HOME": str(tmp_path)}).offline


def test_the_stored_token_is_used_unless_one_is_set(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_stored\n")
    home = {"HF_HOME": str(tmp_path)}
    assert read_access(environ=home).token == "hf_stored"
    assert read_access(environ={**home, "HF_TOKEN": "hf_set"}).token == "hf_set"
    assert read_access(environ={"HF_TOKEN_PATH": str(tmp_path / "token")}).token == "hf_stored"


def test_a_token_is_no_header_and_shows_nowhere(tmp_path: Path) -> None:
    for token in ("hf_a\r\nHost: evil", "hf a", "hf_é"):
        with pytest.raises(HubError) as caught:
            read_access(environ={"HF_TOKEN": token, "HF_HOME": str(tmp_path)})
        assert token not in str(caught.value)
    assert "hf_secret" not in repr(read_access(environ={"HF_TOKEN": "hf_secret"}))


def test_a_token_and_a_mirror_are_worth_a_warning() -> None:
    access = read_access(environ={"HF_TOKEN": "hf_x", "HF_ENDPOINT": "https://mirror.example/"})
    assert access.endpoint == "https://mirror.example"
    assert "mirror.example" in access.warning
    assert read_access(environ={"HF_TOKEN": "hf_x"}).warning == ""


@pytest.mark.parametrize(
    "endpoint", ["mirror", "ftp://x", "https://", "https://u:p@host", "https://host:99999", "http://[::1", "http://["]
)
def test_an_endpoint_that_is_none(endpoint: str) -> None:
    with pytest.raises(UsageError, match="HF_ENDPOINT"):
        read_access(environ={"HF_ENDPOINT": endpoint})


def test_the_cache_is_where_others_look_for_it() -> None:
    assert read_access(environ={"HF_HUB_CACHE": "/a", "HF_HOME": "/b"}).cache == Path("/a")
    assert read_access(environ={"XDG_CACHE_HOME": "/c"}).cache == Path("/c/huggingface/hub")
