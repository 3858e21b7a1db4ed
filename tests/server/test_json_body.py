"""Bodies that are too long, too deep, or no JSON."""

import httpx
import pytest
from localrun_testing.waiting import PATIENCE

from localrun.server.json_body import MAX_BYTES, MAX_DEPTH

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b"\xff\xfe{}", 400),
        (b'{"a":' * 100_000, 400),
        (b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH, 400),
        (b"[" * 200 + b"]" * 200, 400),
    ],
    ids=["empty", "cut", "list", "null", "no text", "endless", "deep", "deep list"],
)
def test_bodies_that_are_no_request(http: httpx.Client, body: bytes, status: int) -> None:
    answer = http.post("/v1/chat/completions", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, "invalid_request_error")


def test_long_bodies_are_not_read_to_their_end(http: httpx.Client) -> None:
    answer = http.post("/v1/chat/completions", content=b" " * (MAX_BYTES + 1), headers=JSON, timeout=PATIENCE)
    assert answer.status_code == 413
