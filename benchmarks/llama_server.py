"""llama.cpp's server, which `build_peers.py --server` builds."""

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import httpx


@contextmanager
def llama_server(
    program: str, model: str, threads: int, slots: int, ctx: int, more: Sequence[str] = ()
) -> Iterator[str]:
    """The address of a server of that model with so many slots of `ctx` tokens each, until the block is left.

    `more`: further arguments.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    held = ("-t", threads, "-tb", threads, "-np", slots, "-c", slots * ctx, "--host", "127.0.0.1", "--port", port)
    command = [str(word) for word in (program, "-m", model, *held, "--jinja", "--no-ui", *more)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(f"{address}/health", process)
            yield address
        finally:
            process.terminate()


def _wait_for(address: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the model is loaded."""
    while process.poll() is None:
        with suppress(httpx.TransportError):
            if httpx.get(address).status_code == 200:
                return
        time.sleep(0.1)
    raise SystemExit("llama-server does not start: call it yourself to see why")
