"""Keys of servers in the system's keyring: written there, read at each use, gone with the server, and in no file."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from localrun_testing.faces import Faces
from localrun_testing.fake_chat_server import fake_chat_server

from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import change_endpoint, read_endpoints, server_named
from localrun.client.remote.key_store import stored_key

keyring = pytest.importorskip("keyring", reason="the package keyring is not installed")
KEY = "sk-canary-123456"


def backend_of(priority: float) -> object:
    """A keyring in memory, by the library's own interface."""
    from keyring.backend import KeyringBackend
    from keyring.errors import PasswordDeleteError

    class InMemory(KeyringBackend):  # type: ignore[misc]
        keys: dict[tuple[str, str], str]

        def get_password(self, service: str, username: str) -> str | None:
            return self.keys.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.keys[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            if self.keys.pop((service, username), None) is None:
                raise PasswordDeleteError

    InMemory.priority = priority
    InMemory.keys = {}
    return InMemory()


@pytest.fixture(autouse=True)
def system() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(backend_of(5))
    yield
    keyring.set_keyring(before)


def add(faces: Faces, monkeypatch: pytest.MonkeyPatch, url: str, typed: str = f"{KEY}\n") -> tuple[int, str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    code, out, err = faces.run("host", "add", "lab", url, "--keyring")
    return code, out + err


def all_files(home: Path) -> str:
    return "".join(path.read_text("utf-8", "replace") for path in home.rglob("*") if path.is_file())


def test_a_key_goes_from_stdin_to_the_keyring_and_to_the_server(
    faces: Faces, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_chat_server() as server:
        server.key = KEY
        code, said = add(faces, monkeypatch, server.url)
        assert (code, KEY in said) == (0, False)
        assert stored_key("lab") == KEY
        assert "keyring" in faces.run("host", "list")[1]
        assert faces.run("run", "--server", "lab", "--no-stdin", "Hi")[0] == 0
        assert server.seen[-1].key == KEY
        assert KEY not in all_files(home)
        assert faces.run("host", "rm", "lab")[0] == 0
    assert stored_key("lab") == ""


def test_a_change_of_name_takes_the_key_along(home: Path) -> None:
    change_endpoint(None, Endpoint("lab", "http://lab/v1", KEY, in_keyring=True))
    before = server_named("lab")
    change_endpoint(before, Endpoint("lab2", "http://lab/v1", before.key, in_keyring=True))
    assert (stored_key("lab"), stored_key("lab2")) == ("", KEY)
    assert read_endpoints() == [Endpoint("lab2", "http://lab/v1", KEY, in_keyring=True)]
    assert KEY not in all_files(home)


def test_a_keyring_that_forgot_the_key_is_named(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> None:
    assert add(faces, monkeypatch, "http://127.0.0.1:9/v1")[0] == 0
    keyring.delete_password("localrun", "lab")
    assert "keyring, which does not give it" in faces.run("host", "list")[1]


def test_a_keyring_of_plain_files_is_none(faces: Faces, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keyring.set_keyring(backend_of(0.5))
    code, said = add(faces, monkeypatch, "http://127.0.0.1:9/v1")
    assert (code, "keeps keys safe" in said) == (2, True)
    assert not read_endpoints()


def test_without_the_library_the_command_that_installs_it_is_named(
    faces: Faces, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    code, said = add(faces, monkeypatch, "http://127.0.0.1:9/v1")
    assert (code, "localrun[keyring]" in said) == (2, True)
    assert stored_key("lab") == ""
    change_endpoint(None, Endpoint("lab", "http://lab/v1", in_keyring=True))
    assert faces.run("host", "list")[0] == faces.run("host", "rm", "lab")[0] == 0


@pytest.mark.parametrize("typed", ["", "\n", "  \n", "two words\n"])
def test_no_key_is_none(faces: Faces, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    assert add(faces, monkeypatch, "http://127.0.0.1:9/v1", typed)[0] == 2
    assert not read_endpoints()
