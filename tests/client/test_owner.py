"""The running server is found; one that is gone is not."""

import json
import os
from pathlib import Path

import psutil
import pytest

from localrun.base.paths import writable_folder
from localrun.client.attach.owner import FILE, announced, running_server


def kept() -> Path:
    home = writable_folder("cache")
    assert home
    return home / FILE


def test_a_server_is_found_while_it_runs() -> None:
    with announced("http://127.0.0.1:1", ""):
        found = running_server()
        assert found
        assert (found.pid, found.url) == (os.getpid(), "http://127.0.0.1:1")
        with announced("http://127.0.0.1:2", ""):
            assert running_server() == found
    assert running_server() is None
    assert not kept().exists()


@pytest.mark.parametrize(
    "values",
    [
        {"pid": os.getpid(), "started": 1.0, "url": "u", "socket": ""},  # the number of a process that is gone
        {"pid": 2**40, "started": 1.0, "url": "u", "socket": ""},
        {"pid": os.getpid(), "started": psutil.Process().create_time(), "url": 1, "socket": ""},
        {"pid": "x"},
        [],
    ],
)
def test_what_is_left_of_another_is_not_taken_for_it(values: object) -> None:
    kept().write_text(json.dumps(values))
    assert running_server() is None
    with announced("http://127.0.0.1:1", ""):
        assert running_server()
