"""RemoteClient against a real server of llama.cpp, its own or that of its Python bindings, with the built-in model."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from localrun.base.errors import LocalrunError, NotFoundError, PromptTooLongError, UsageError
from localrun.base.events import Done, Token
from localrun.base.request import Request, RequestMessage, Sampling
from localrun.base.resources import resource
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.models import list_models
from localrun.formats.gguf import GgufFile, open_gguf
from localrun.formats.quant import QUANT_TYPES
from tools.gguf_write import write_gguf

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("peer server")]
KEY = "sk-peer"
STORY = "Tell me a story about an otter."


def as_f32(path: Path) -> str:
    """The built-in model without quantisation: where there is AMX, llama.cpp crashes on its small Q8_0 matrices."""
    file = open_gguf(resource("localrun/builtin/localrun-tiny.gguf"))
    decoded = {name: tensor.float() for name, tensor in tensors_of(file).items()}
    write_gguf(path, {**file.metadata, "general.file_type": 0}, decoded)
    return str(path)


def tensors_of(file: GgufFile) -> dict[str, torch.Tensor]:
    raw = {name: torch.frombuffer(file.read(name), dtype=torch.uint8) for name in file.tensors}
    return {name: QUANT_TYPES[info.qtype].decode(raw[name], info.shape) for name, info in file.tensors.items()}


def commands(port: int, model: str) -> Iterator[list[str]]:
    """How each server that is here is started."""
    folders = [os.environ.get("LOCALRUN_PEERS", ""), str(Path(os.environ.get("LOCALRUN_LLAMA_LIB", "")))]
    own = shutil.which("llama-server", path=os.pathsep.join([*folders, *(f"{f}/bin" for f in folders)]))
    if own:
        common = ["--host", "127.0.0.1", "--port", str(port), "--api-key", KEY]
        yield [own, "-m", model, *common, "-c", "512", "-t", "1", "--jinja", "--alias", "tiny"]
    names = ("llama_cpp", "uvicorn", "fastapi", "sse_starlette", "starlette_context", "pydantic_settings")
    if all(importlib.util.find_spec(name) for name in names):
        common = ["--host", "127.0.0.1", "--port", str(port), "--api_key", KEY]
        settings = ["--n_ctx", "512", "--n_threads", "1", "--model_alias", "tiny"]
        yield [sys.executable, "-m", "llama_cpp.server", "--model", model, *common, *settings]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = as_f32(tmp_path_factory.mktemp("peer") / "tiny.gguf")
    found = next(commands(port, model), None)
    if found is None:
        pytest.skip("no llama.cpp server: LOCALRUN_PEERS has neither llama-server nor llama_cpp.server")
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": paths, "LLAMA_CPP_LIB_PATH": os.environ.get("LOCALRUN_LLAMA_LIB", "")}
    with subprocess.Popen(found, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(url, process)
            yield url
        finally:
            process.kill()


def wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        try:
            list_models(Endpoint("peer", url, KEY))
            return
        except LocalrunError:
            assert process.poll() is None, "the server ended"
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


def request(n: int = 40, text: str = STORY) -> Request:
    sampling = Sampling(temperature=0.0, top_k=5, min_p=0.01, repeat_penalty=1.0, seed=7)
    return Request(({"role": "user", "content": text},), None, sampling, n)


def test_an_answer(url: str) -> None:
    client = RemoteClient(Endpoint("peer", url, KEY))
    *parts, last = client.generate(request())
    assert isinstance(last, Done)
    said = "".join(part.text for part in parts if isinstance(part, Token) and part.channel == "answer")
    assert said == last.completion.text != ""
    assert 0 < last.completion.completion_tokens <= 40
    assert last.completion.timings.decode_tps is None or last.completion.timings.decode_tps > 0
    *_, again = client.generate(request())
    assert isinstance(again, Done)
    assert again.completion.text == said


def test_it_counts_a_prompt_as_it_reads_it(url: str) -> None:
    client = RemoteClient(Endpoint("peer", url, KEY))
    turns = ("Hi", "Tell me – “briefly” – of €", "Why?")
    messages: list[RequestMessage] = [{"role": "system", "content": "Be brief."}]
    cached = 0
    for turn in turns:
        asked = request(8)
        messages.append({"role": "user", "content": turn})
        asked = replace(asked, messages=tuple(messages))
        view = client.preview(asked, pieces=True)
        *_, done = client.generate(asked)
        assert isinstance(done, Done)
        if view is not None:  # the Python bindings have no page for it
            assert (view.n_tokens, turn in view.text) == (done.completion.prompt_tokens, True)
            assert (done.completion.cached_tokens or 0) >= cached, "what the turn before computed"
            cached = view.n_tokens - 8
        messages.append({"role": "assistant", "content": done.completion.text})


def test_it_says_what_it_is(url: str) -> None:
    client = RemoteClient(Endpoint("peer", url, KEY))
    if client.info.server_says[0].startswith("engine: llama.cpp"):
        assert client.info.ctx == 512
        with pytest.raises(UsageError, match="cannot call tools"):
            client.generate(replace(request(), tools=({"type": "function", "function": {"name": "f"}},)))


def test_cancel_and_the_next(url: str) -> None:
    client = RemoteClient(Endpoint("peer", url, KEY))
    generation = client.generate(request(400))
    for part in generation:
        if isinstance(part, Token):
            generation.cancel()
        if isinstance(part, Done):
            assert part.completion.stop_reason == "cancelled"
    *_, last = client.generate(request(5))
    assert isinstance(last, Done)
    assert last.completion.stop_reason in ("stop", "length")


def test_what_goes_wrong(url: str) -> None:
    with pytest.raises(UsageError, match="does not accept the key"):
        list(client_with_a_wrong_key(url).generate(request()))
    with pytest.raises(NotFoundError, match="has no model other"):
        RemoteClient(Endpoint("peer", url, KEY, "other"))
    with pytest.raises(PromptTooLongError):
        list(RemoteClient(Endpoint("peer", url, KEY)).generate(request(text="word " * 3000)))


def client_with_a_wrong_key(url: str) -> RemoteClient:
    """Some servers list their models without a key, so that it is found to be wrong only later."""
    client = RemoteClient(Endpoint("peer", url, KEY))
    client._endpoint = Endpoint("peer", url, "sk-wrong", client.info.name)
    return client
