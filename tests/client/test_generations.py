"""Several answers at once through one client, one of them cancelled: the others are what they are alone."""

import gc
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from localrun_testing.fake_chat_server import Reply, fake_chat_server
from localrun_testing.waiting import PATIENCE, until

from localrun.base.events import Completion, Done, Token
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.interface import EngineClient, Generation
from localrun.client.local import LocalClient
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint
from localrun.client.rpc.channel import EngineChannel
from localrun.client.rpc.wire import Call, View, pack
from localrun.client.worker.client import WorkerClient

pytestmark = pytest.mark.process

BUILTIN = Path(resource("localrun/builtin/localrun-tiny.gguf"))


class Listener(threading.Thread):
    """Hears one answer to its end."""

    def __init__(self, generation: Generation) -> None:
        super().__init__(daemon=True)
        self.generation = generation
        self.n_tokens = 0
        self.done: Completion | None = None
        self.start()

    def run(self) -> None:
        for event in self.generation:
            self.n_tokens += isinstance(event, Token)
            self.done = event.completion if isinstance(event, Done) else None

    def end(self) -> Completion:
        self.join(PATIENCE)
        assert self.done is not None
        return self.done


def cancel_one_of(client: EngineClient, requests: Sequence[Request], index: int) -> list[Completion]:
    """All of them at once; that one is cancelled at its first token."""
    listeners = [Listener(client.generate(request)) for request in requests]
    until(lambda: listeners[index].n_tokens > 0 or not listeners[index].is_alive())
    listeners[index].generation.cancel()
    return [listener.end() for listener in listeners]


def ask(text: str, max_tokens: int = 60) -> Request:
    messages = ({"role": "user", "content": text},)
    return Request(messages, sampling=Sampling(temperature=1.0, seed=3), max_tokens=max_tokens)


def test_in_this_process() -> None:
    questions = ["Hello!", "Tell me a story about an otter.", "What is a KV cache?", "Tell me a joke"]
    requests = [ask(text) for text in questions]
    requests[1] = Request(prompt="One two three", sampling=Sampling(temperature=1.0, seed=3), max_tokens=900)
    with LocalClient(LoadOptions(BUILTIN)) as client:
        alone = [Listener(client.generate(request)).end() for request in requests]
        together = cancel_one_of(client, requests, 1)
    for number, (one, other) in enumerate(zip(alone, together, strict=True)):
        if number != 1:
            assert (one.token_ids, one.stop_reason) == (other.token_ids, other.stop_reason)
    assert together[1].token_ids == alone[1].token_ids[: len(together[1].token_ids)]


def counting(counts: Sequence[int]) -> Iterator[Request]:
    return (Request(prompt=f"count {n} 0.005") for n in counts)


def test_in_a_worker() -> None:
    with WorkerClient(LoadOptions(Path("x"), name="fake"), module="localrun_testing.fake_worker") as client:
        one, cancelled, other = cancel_one_of(client, [*counting([80, 100_000, 120])], 1)
    assert (one.completion_tokens, one.stop_reason) == (80, "stop")
    assert (other.completion_tokens, other.stop_reason) == (120, "stop")
    assert cancelled.stop_reason == "cancelled"
    assert cancelled.completion_tokens < 100_000


def test_one_that_is_cancelled_before_it_began_in_a_worker() -> None:
    with WorkerClient(LoadOptions(Path("x"), name="fake"), module="localrun_testing.fake_worker") as client:
        early, other = (client.generate(request) for request in counting([100_000, 30]))
        early.cancel()
        assert Listener(early).end().stop_reason == "cancelled"
        assert Listener(other).end().completion_tokens == 30
        assert client._worker is not None
        assert not client._worker._inboxes


class Silent(EngineChannel):
    """A channel whose other end says nothing."""

    pid = None


def test_the_garbage_collector_may_end_an_answer_amid_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs at any allocation, in the thread that asks for the next answer. That one waited for itself, and everybody
    for it."""
    channel = Silent()
    left = channel.call(View())

    def pack_and_collect(call: Call) -> bytes:
        channel.drop(left)
        return pack(call)

    monkeypatch.setattr("localrun.client.rpc.channel.pack", pack_and_collect)
    asking = threading.Thread(target=channel.call, args=(View(),), daemon=True)
    asking.start()
    asking.join(PATIENCE)
    assert not asking.is_alive()
    assert left.number not in channel._inboxes


def test_at_a_server() -> None:
    piece = b'data: {"choices": [{"delta": {"content": "hi "}}]}\n\n'
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    with fake_chat_server() as server:
        server.replies = [Reply((piece,), end="stall"), Reply((piece, piece, end)), Reply((piece, piece, piece, end))]
        client = RemoteClient(Endpoint("fake", server.url))
        stalled = Listener(client.generate(ask("a")))
        until(lambda: stalled.n_tokens > 0)
        others = [Listener(client.generate(ask("b"))), Listener(client.generate(ask("c")))]
        stalled.generation.cancel()
        assert stalled.end().stop_reason == "cancelled"
        assert sorted(len(one.end().text) for one in others) == [6, 9]
        assert all(one.end().stop_reason == "stop" for one in others)


def local() -> AbstractContextManager[LocalClient]:
    return LocalClient(LoadOptions(BUILTIN, ctx=512))


def test_an_unreferenced_generation_is_cancelled() -> None:
    with local() as client:
        engine = client.model.engine
        client.generate(ask("Hello!", 400))
        gc.collect()
        until(lambda: not engine.generations.handles and engine.inbox.empty())
        generation = client.generate(ask("Hello!", 400))
        next(generation)
        del generation
        gc.collect()
        until(lambda: not engine.generations.handles)
        assert Listener(client.generate(ask("Hello!", 5))).end().completion_tokens == 5


@pytest.mark.parametrize("busy", [False, True])
def test_an_unreferenced_client_is_closed(busy: bool) -> None:
    client = LocalClient(LoadOptions(BUILTIN, ctx=512))
    thread, gone = client.model.engine.thread, weakref.ref(client.model.engine)
    generation = client.generate(ask("Hello!", 400))
    if busy:
        next(generation)
    else:
        Listener(generation).end()
    del client, generation
    gc.collect()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    until(lambda: gc.collect() >= 0 and gone() is None)
