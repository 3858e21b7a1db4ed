"""Bodies that are too long, too deep, or no JSON."""

import socket

import httpx
import pytest
from localrun_testing.waiting import PATIENCE

from localrun.server.request.json_body import MAX_BYTES, MAX_DEPTH, MAX_KEYS, MAX_VALUES

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b"\xff\xfe{}", 400),
        (b'{"metadata":{"a":NaN}}', 400),
        (b'{"metadata":{"a":1e999}}', 400),
        (b'{"a":' * 100_000, 400),
        (b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH, 400),
        (b"[" * 200 + b"]" * 200, 400),
    ],
    ids=["empty", "cut", "list", "null", "no text", "no number", "beyond numbers", "endless", "deep", "deep list"],
)
def test_bodies_that_are_no_request(http: httpx.Client, body: bytes, status: int) -> None:
    answer = http.post("/v1/chat/completions", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, "invalid_request_error")


def test_a_number_of_many_digits_is_refused_without_advice_for_programmers(http: httpx.Client) -> None:
    body = b'{"messages":[],"seed":' + b"9" * 5_000 + b"}"
    message = http.post("/v1/chat/completions", content=body, headers=JSON).json()["error"]["message"]
    assert "digits" in message
    assert "sys." not in message


def test_long_bodies_are_not_read_to_their_end(http: httpx.Client) -> None:
    answer = http.post("/v1/chat/completions", content=b" " * (MAX_BYTES + 1), headers=JSON, timeout=PATIENCE)
    assert answer.status_code == 413


def test_a_body_that_says_it_is_too_long_is_not_waited_for(http: httpx.Client) -> None:
    said = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {MAX_BYTES + 1}\r\n"
    with socket.create_connection((http.base_url.host, http.base_url.port), PATIENCE) as connection:
        connection.sendall(f"{said}content-type: application/json\r\n\r\n".encode())
        assert b" 413 " in connection.recv(64)


@pytest.mark.parametrize(("value", "n"), [(b"1,", MAX_VALUES), (b"[],", MAX_VALUES // 2), (b"{},", MAX_VALUES // 2)])
def test_too_many_values_are_not_made(http: httpx.Client, value: bytes, n: int) -> None:
    """Ten million empty lists are 32 MB on the wire, and 700 MB and seconds in which no one is answered here."""
    body = b'{"x":[' + value * n + b"1]}"
    answer = http.post("/v1/chat/completions", content=body, headers=JSON, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def test_too_many_keys_are_not_made(http: httpx.Client) -> None:
    """A million and a half of them, each another one, took two seconds in which no one was answered."""
    body = b'{"metadata":{' + b",".join(b'"%d":0' % number for number in range(MAX_KEYS)) + b"}}"
    answer = http.post("/v1/chat/completions", content=body, headers=JSON, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
