"""A second localrun that uses the engine of a running one: the same answers, its own engine where that is another, and
nothing lost when the running one goes."""

import os
import socket
import stat
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.waiting import PATIENCE, until

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.errors import DoesNotFitError, EngineDiedError, EngineError, LocalrunError, PromptTooLongError
from localrun.base.events import Completion, Done, Event, ModelInfo, Token, ToolCallDelta
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.views import PromptView
from localrun.client.attach import channel as attachment
from localrun.client.attach import private_socket
from localrun.client.attach.client import AttachedClient, attach
from localrun.client.attach.host import AttachHost
from localrun.client.attach.owner import announced, running_server
from localrun.client.attach.same_load import difference, versions_of
from localrun.client.choice import builtin
from localrun.client.interface import EngineClient
from localrun.client.local import LocalClient
from localrun.client.replay import Replay
from localrun.client.rpc.wire import Attach, Call, Generate, Loaded, Reply, pack, read_messages
from localrun.hub.disk.stored import StoredModel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="windows has no Unix sockets")

HALF = AdapterChoice(Path("half.gguf"), 0.5)
ANY = LoadOptions(Path("model.gguf"), disk_cache=1)


@dataclass
class Sharing:
    """A host under test, and what attached clients told their users."""

    host: AttachHost
    hellos: list[Attach] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def attach(self, own: EngineClient | LocalrunError | None = None, options: LoadOptions = ANY) -> AttachedClient:
        """A client; `own` is the engine that it loads when the shared one is gone, or why it cannot."""

        def open_own(progress: object) -> EngineClient:
            assert own is not None, "the shared one was to answer"
            if isinstance(own, LocalrunError):
                raise own
            return own

        client = attach(options, "a test", open_own, lambda done, total: None, self.told.append)
        assert client is not None, self.told
        return client


@contextmanager
def sharing(client: EngineClient) -> Iterator[Sharing]:
    """A host whose engine is `client`, found as that of a running localrun."""
    with ExitStack() as stack:
        found = Sharing(AttachHost(lambda hello, program: found.hellos.append(hello) or client))  # type: ignore[func-returns-value]
        stack.callback(found.host.close, "the running localrun has ended")
        stack.enter_context(announced("", "", str(found.host.path)))
        yield found


def fake(text: str) -> FakeClient:
    return FakeClient(ANY, lambda request: text)


def finish(events: Iterator[Event]) -> Done:
    *_, last = events
    assert isinstance(last, Done)
    return last


def tokens(events: Iterator[Event], n: int) -> str:
    """The text of the next tokens."""
    words: list[str] = []
    while len(words) < n:
        event = next(events)
        words += [event.text] if isinstance(event, Token) else []
    return "".join(words)


# ---- the same answers


@pytest.fixture(scope="module")
def local() -> Iterator[LocalClient]:
    stored = builtin().stored
    assert isinstance(stored, StoredModel)
    with LocalClient(LoadOptions(stored.path, stored.name, stored.precision)) as client:
        yield client


HELLO = ({"role": "user", "content": "Hello, who are you?"},)
REQUESTS = {
    "greedy": Request(messages=HELLO, sampling=Sampling(temperature=0, seed=4), max_tokens=24),
    "seeded": Request(messages=HELLO, sampling=Sampling(temperature=1.2, seed=5), max_tokens=24),
    "raw": Request(prompt="Once upon a time", sampling=Sampling(seed=6), max_tokens=24),
    "penalties": Request(messages=HELLO, sampling=Sampling(seed=7, repeat_penalty=1.3), max_tokens=24),
    "logprobs": Request(messages=HELLO, sampling=Sampling(seed=8), max_tokens=4, logprobs=2, prompt_logprobs=1),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_an_attached_client_answers_as_the_engine_itself(name: str, local: LocalClient) -> None:
    own = finish(local.generate(REQUESTS[name]))
    with sharing(local) as shared:
        client = shared.attach()
        answer = finish(client.generate(REQUESTS[name]))
        assert (answer.prompt_ids, answer.completion.token_ids) == (own.prompt_ids, own.completion.token_ids)
        assert (answer.completion.text, answer.completion.seed) == (own.completion.text, own.completion.seed)
        assert (answer.completion.engine, client.info.engine) == ("attached", "attached")
        view = client.view()
        assert view
        assert view.n_tokens
        assert client.preview(REQUESTS[name]) == local.preview(REQUESTS[name])
        client.close()


def test_several_at_once_answer_as_one(local: LocalClient) -> None:
    expected = {name: finish(local.generate(request)).completion.token_ids for name, request in REQUESTS.items()}
    found: dict[tuple[int, str], Any] = {}

    def ask(number: int, client: AttachedClient, name: str) -> None:
        found[number, name] = finish(client.generate(REQUESTS[name])).completion.token_ids

    with sharing(local) as shared:
        clients = [shared.attach() for _ in range(2)]
        assert [program.name for program in shared.host.programs] == ["a test"] * 2
        threads = [
            threading.Thread(target=ask, args=(number, client, name))
            for number, client in enumerate(clients)
            for name in REQUESTS
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {(number, name): ids for number in (0, 1) for name, ids in expected.items()}
        clients[0].close()
        until(lambda: len(shared.host.programs) == 1)
        clients[1].close()


def test_a_smaller_context_than_the_engine_has_is_kept_to(local: LocalClient) -> None:
    with sharing(local) as shared:
        client = shared.attach(options=replace(ANY, ctx=64))
        assert client.info.ctx == 64
        with pytest.raises(PromptTooLongError):
            finish(client.generate(Request(prompt="word " * 100)))
        answer = finish(client.generate(Request(prompt="word " * 20, sampling=Sampling(seed=1)))).completion
        assert (answer.prompt_tokens or 0) + answer.completion_tokens <= 64
        assert answer.ctx == 64
        client.close()


@pytest.mark.parametrize(("disk_cache", "sent"), [(0, ""), (1, "chat")])
def test_nothing_of_a_chat_is_kept_that_was_not_to_be(disk_cache: int, sent: str) -> None:
    engine = fake("a")
    with sharing(engine) as shared:
        client = shared.attach(options=replace(ANY, disk_cache=disk_cache))
        finish(client.generate(Request(prompt="x", chat_id="chat")))
        assert [request.chat_id for request in engine.requests] == [sent]
        client.close()


# ---- another engine than this one would be


def gguf(folder: Path, name: str = "model.gguf", content: bytes = b"GGUF") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def engine_of(loaded: LoadOptions, **info: Any) -> FakeClient:
    class Loaded(FakeClient):
        @property
        def info(self) -> ModelInfo:
            return replace(super().info, ctx=4096, kv_codec="q8", backend="cpu", precision="Q8_0", **info)

    return Loaded(loaded, lambda request: "", files=versions_of(loaded))


@pytest.mark.parametrize(
    ("loaded", "wanted", "words"),
    [
        ({}, {}, ""),
        ({}, {"precision": "Q8_0"}, ""),
        ({}, {"precision": "int4"}, "the model in Q8_0"),
        ({}, {"ctx": 4096}, ""),
        ({"ctx": 4096}, {"ctx": 1024}, ""),
        ({}, {"ctx": 8192}, "a context of 4,096 tokens"),
        ({"ctx": 4096}, {}, "a context of 4,096 tokens"),
        ({}, {"kv": "q8"}, ""),
        ({}, {"kv": "f16"}, "its KV cache in q8"),
        ({"kv": "q8"}, {}, "its KV cache in q8"),
        ({}, {"window": 1024}, "no window"),
        ({"window": 1024}, {}, "a window of 1,024 tokens"),
        ({"window": 1024}, {"window": 1024}, ""),
        ({}, {"backend": "cpu"}, ""),
        ({}, {"backend": "reference"}, "the cpu backend"),
        ({"backend": "cpu"}, {}, "the cpu backend"),
        ({"threads": 1}, {}, "1 threads"),
        ({}, {"prefix_cache": False}, "a prefix cache"),
        ({"disk_cache": 0}, {}, "nothing of chats on disk"),
        ({"disk_cache": 0}, {"disk_cache": 0}, ""),
        ({}, {"adapters": (AdapterChoice(Path("a.gguf")),)}, "no adapter loaded"),
        ({"adapters": (AdapterChoice(Path("a.gguf")),)}, {}, "the adapter a.gguf loaded"),
        ({"adapters": (HALF,)}, {"adapters": (replace(HALF, scale=1.0),)}, "the adapter half.gguf loaded"),
        ({"parallel": 4, "packed_weights": None, "name": "x"}, {}, ""),
    ],
)
def test_what_was_loaded_otherwise_is_named(
    loaded: dict[str, Any], wanted: dict[str, Any], words: str, tmp_path: Path
) -> None:
    base = LoadOptions(gguf(tmp_path), disk_cache=1)
    assert difference(replace(base, **wanted), engine_of(replace(base, **loaded))) == words


def test_another_file_or_version_of_it_is_another_model(tmp_path: Path) -> None:
    engine = engine_of(LoadOptions(gguf(tmp_path)))
    assert difference(LoadOptions(gguf(tmp_path, "other.gguf")), engine) == "another model loaded"
    link = tmp_path / "link.gguf"
    link.symlink_to("model.gguf")
    assert difference(LoadOptions(link), engine) == ""
    gguf(tmp_path, content=b"GGUF of another version")
    assert difference(LoadOptions(tmp_path / "model.gguf"), engine) == "loaded the model before its file changed"
    assert difference(LoadOptions(tmp_path / "gone.gguf"), engine) == "another model loaded"


def test_an_adapter_that_changed_is_another_model(tmp_path: Path) -> None:
    options = LoadOptions(gguf(tmp_path), adapters=(AdapterChoice(gguf(tmp_path, "adapter.gguf"), 0.5),))
    engine = engine_of(options)
    assert difference(options, engine) == ""
    gguf(tmp_path, "adapter.gguf", content=b"GGUF of another version")
    assert difference(options, engine) == "loaded the model before its file changed"


def test_a_tokenizer_that_changed_is_another_model(tmp_path: Path) -> None:
    for name in ("model.safetensors", "tokenizer.json", "README.md"):
        (tmp_path / name).write_text("{}")
    engine = engine_of(LoadOptions(tmp_path))
    (tmp_path / "README.md").write_text("more")
    assert difference(LoadOptions(tmp_path), engine) == ""
    (tmp_path / "tokenizer.json").write_text('{"a": 1}')
    assert difference(LoadOptions(tmp_path), engine)


def test_why_it_is_not_attached_is_told_in_a_line() -> None:
    told: list[str] = []

    def refuse(hello: Attach, program: object) -> EngineClient:
        raise EngineError("the running localrun has another model loaded")

    host = AttachHost(refuse)
    with announced("", "", str(host.path)):
        assert attach(ANY, "a test", lambda progress: fake(""), lambda done, total: None, told.append) is None
    host.close("")
    assert told == ["the running localrun has another model loaded: the model is loaded here"]
    assert attach(ANY, "a test", lambda progress: fake(""), lambda done, total: None, told.append) is None
    assert len(told) == 1, "where nothing runs there is nothing to tell"


# ---- the running one goes


def test_an_answer_under_way_goes_on_where_it_was() -> None:
    with sharing(fake("a~bc…")) as shared:
        own = fake("a~bcdef")
        client = shared.attach(own)
        events = iter(client.generate(Request(prompt="x")))
        assert tokens(events, 3) == "a~b"
        shared.host.end_all("the running localrun has loaded another model")
        rest = [event for event in events if isinstance(event, Token | Done)]
        assert [event.text for event in rest if isinstance(event, Token)] == ["c", "d", "e", "f"]
        assert isinstance(rest[-1], Done)
        assert (rest[-1].completion.text, rest[-1].completion.engine) == ("abcdef", "own")
        assert shared.told == ["the running localrun has loaded another model: the model is loaded here"]
        assert own.requests[0].sampling.seed is not None, "the seed it had"
        assert finish(client.generate(Request(prompt="x"))).completion.text == "abcdef"
        assert len(shared.told) == 1
        client.close()
        assert own.closed


def test_a_call_goes_on_under_the_id_that_it_began_with() -> None:
    def events(id: str, n: int) -> Iterator[Event]:
        yield Token(1, "x", "answer")
        for arguments in ["", '{"a":', "1}"][:n]:
            yield ToolCallDelta(0, id, "f", arguments, is_complete=arguments == "1}")

    replay = Replay()
    assert len(list(replay.record(events("first", 2)))) == 3
    assert list(replay.rest(events("second", 3))) == [ToolCallDelta(0, "first", "f", "1}", is_complete=True)]


def test_an_answer_that_comes_out_otherwise_is_an_error() -> None:
    with sharing(fake("abc…")) as shared:
        client = shared.attach(fake("abXdef"))
        events = iter(client.generate(Request(prompt="x")))
        assert tokens(events, 3) == "abc"
        shared.host.close("it has ended")
        with pytest.raises(EngineDiedError, match="cannot be gone on with"):
            list(events)
        client.close()


def test_whoever_cancels_then_keeps_what_was_said() -> None:
    with sharing(fake("a~bc…")) as shared:
        client = shared.attach()
        generation = client.generate(Request(prompt="x"))
        events = iter(generation)
        assert tokens(events, 4) == "a~bc"
        client._shared._channel.kill("gone")
        generation.cancel()
        done = finish(events)
        assert (done.completion.text, done.completion.stop_reason) == ("abc", "cancelled")
        client.close()


def test_the_next_request_loads_the_model_and_says_so() -> None:
    with sharing(fake("shared")) as shared:
        client = shared.attach(fake("own"))
        shared.host.end_all("the running localrun has unloaded its model")
        until(lambda: not client._shared.is_shared)
        assert client.view() is None
        assert client.preview(Request(prompt="x")) is None
        assert finish(client.generate(Request(prompt="x"))).completion.text == "own"
        assert shared.told == ["the running localrun has unloaded its model: the model is loaded here"]
        assert isinstance(client.preview(Request(prompt="x")), PromptView)
        client.close()
        with pytest.raises(EngineError, match="closed"):
            finish(client.generate(Request(prompt="x")))


def test_a_load_that_fails_is_an_error_of_that_request() -> None:
    with sharing(fake("shared")) as shared:
        client = shared.attach(DoesNotFitError("it does not fit"))
        shared.host.end_all("gone")
        until(lambda: not client._shared.is_shared)
        for _ in range(2):
            with pytest.raises(DoesNotFitError):
                finish(client.generate(Request(prompt="x")))
        client.close()


@dataclass
class Watched(FakeClient):
    """Records how answers ended."""

    ended: list[Completion] = field(default_factory=list)

    def events(self, request: Request, cancelled: threading.Event) -> Iterator[Event]:
        for event in super().events(request, cancelled):
            if isinstance(event, Done):
                self.ended.append(event.completion)
            yield event


def test_what_a_program_asked_ends_with_it() -> None:
    engine = Watched(ANY, lambda request: "ab…")
    with sharing(engine) as shared:
        client, other = shared.attach(), shared.attach()
        events = [iter(one.generate(Request(prompt="x"))) for one in (client, other)]
        assert [tokens(one, 2) for one in events] == ["ab", "ab"]
        client.close()
        until(lambda: len(engine.ended) == 1)
        assert engine.ended[0].stop_reason == "cancelled"
        until(lambda: [program.name for program in shared.host.programs] == ["a test"])
        other.close()


# ---- who may, and what else may be there


def test_only_this_user_can_open_the_socket() -> None:
    with sharing(fake("a")) as shared:
        path = shared.host.path
        modes = [stat.S_IMODE(one.lstat().st_mode) for one in (path.parent, path)]
        assert modes == [0o700, 0o600]
        path.parent.chmod(0o755)
        with pytest.raises(PermissionError):
            private_socket.connect(path)
        path.parent.chmod(0o700)
        with private_socket.connect(path) as connection:
            assert private_socket.peer_of(connection) == (os.getpid(), os.getuid())
    assert not path.parent.exists()


def test_another_users_program_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    with sharing(fake("a")) as shared:
        monkeypatch.setattr(private_socket, "peer_of", lambda connection: private_socket.Peer(1, os.getuid() + 1))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
            stranger.connect(str(shared.host.path))
            assert stranger.recv(1) == b""
        with pytest.raises(PermissionError):
            private_socket.connect(shared.host.path)


HELLO_OF_OTHERS = {
    "noise": b"GET / HTTP/1.1\r\n\r\n",
    "messages of another shape": struct.pack("<II", 1, 2) + b"{}",
    "a length that lies": pack(Call(1, Generate(Request(prompt="x"))))[:4] + struct.pack("<I", 1 << 31),
    "no hello": pack(Call(1, Generate(Request(prompt="x")))),
    "another version": pack(Call(1, Attach(ANY, "0.0.0", "an older one"))),
    "half a message": pack(Call(1, Attach(ANY, "0.0.0", "an older one")))[:-3],
}


@pytest.mark.parametrize("said", HELLO_OF_OTHERS.values(), ids=HELLO_OF_OTHERS)
def test_others_are_shown_out_and_the_rest_goes_on(said: bytes) -> None:
    with sharing(fake("a")) as shared:
        with private_socket.connect(shared.host.path) as connection, connection.makefile("rb") as stream:
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
            replies = list(read_messages(stream, Reply))
            assert not any(isinstance(reply.answer, Loaded) for reply in replies)
        client = shared.attach()
        assert finish(client.generate(Request(prompt="x"))).completion.text == "a"
        client.close()
        assert len(shared.hellos) == 1


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (b"", "of another version"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "of another version"),
        (None, "does not answer"),
    ],
)
def test_a_peer_that_says_something_else_is_left(
    says: bytes | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachment, "HELLO_SECONDS", 0.1 if says is None else PATIENCE)
    listener, path = private_socket.listen()
    over = threading.Event()

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            if says is None:
                over.wait()
            else:
                connection.sendall(says)

    thread = threading.Thread(target=answer)
    thread.start()
    told: list[str] = []
    with listener, announced("", "", str(path)):
        assert attach(ANY, "a test", lambda progress: fake(""), lambda done, total: None, told.append) is None
    over.set()
    thread.join()
    private_socket.remove(path)
    assert words in told[0]


def test_what_a_killed_owner_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener, path = private_socket.listen()
    listener.close()
    with announced("", "", str(path)):
        monkeypatch.setattr("localrun.client.attach.owner.is_running", lambda pid, started: False)
        assert running_server() is None
    assert not path.parent.exists()
    other = gguf(tmp_path, "socket")
    private_socket.remove(other)
    assert other.exists(), "what is no socket of ours stays"
