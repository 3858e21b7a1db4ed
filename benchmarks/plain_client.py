"""A client that costs little: a program of its own which asks a server once, over a plain socket.

    python -m benchmarks.plain_client URL < BODY

Clients in use are programs of Rust, C or a browser; one of httpx takes a third of a millisecond for a piece of text, as
much as the server, on cores that the engine uses whole. This one only keeps what comes, with the time, and looks at it
once all is there. Printed is JSON: when each piece of text came, how many tokens the server says there were, and the
seconds that this process computed.
"""

import argparse
import json
import socket
import sys
import time
from urllib.parse import urlsplit

ROOM = 1 << 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", type=urlsplit)
    url, body = parser.parse_args().url, sys.stdin.buffer.read()
    fields = {
        "host": url.netloc,
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    came: list[tuple[float, bytes]] = []
    with socket.create_connection((url.hostname, url.port)) as server:
        server.sendall(f"POST {url.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        began = time.process_time()
        while data := server.recv(ROOM):
            came.append((time.perf_counter(), data))
        computed = time.process_time() - began
    pieces, n_tokens = heard(came)
    json.dump({"pieces": pieces, "n_tokens": n_tokens, "computed": computed}, sys.stdout)


def heard(came: list[tuple[float, bytes]]) -> tuple[list[float], int]:
    """When there was text, and how many tokens. A frame that comes in parts counts with its last."""
    pieces: list[float] = []
    n_tokens, rest = 0, b""
    for moment, data in came:
        *lines, rest = (rest + data).split(b"\n")
        chunks = [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: {")]
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        if any(delta.get("content") or delta.get("reasoning_content") for delta in deltas):
            pieces.append(moment)
        n_tokens = max([n_tokens, *(chunk["usage"]["completion_tokens"] for chunk in chunks if chunk.get("usage"))])
    if not n_tokens:
        raise SystemExit(b"".join(data for _, data in came).decode())
    return pieces, n_tokens


if __name__ == "__main__":
    main()
