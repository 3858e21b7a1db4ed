"""Messages between a client and its worker: everything travels whole, and nothing damaged gets through."""

import dataclasses
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.base import events, request
from localrun.base.errors import (
    ConstraintError,
    EngineError,
    LocalrunError,
    ModelFileError,
    NotFoundError,
    PromptTooLongError,
    ToolSchemaError,
)
from localrun.base.events import Completion, Done, Event, ModelInfo, Prefill, Token
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.views import CacheView
from localrun.client.rpc import wire
from localrun.client.rpc.codec import WireError, codec
from localrun.client.rpc.wire import (
    Alive,
    Attach,
    Begun,
    Call,
    Cancel,
    Ended,
    Events,
    Failure,
    Generate,
    Load,
    Loaded,
    Progress,
    Reply,
    View,
    Viewed,
    as_error,
    as_failure,
    pack,
    read_messages,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(st.text(), json_values, max_size=3)
paths = st.text("abc/ü \udc80", min_size=1).map(Path)  # a name that is not UTF-8, too
samplings = st.builds(Sampling, logit_bias=st.dictionaries(st.integers(), st.floats(), max_size=3))
messages = st.lists(objects, max_size=3).map(tuple)
requests = st.builds(Request, messages=messages, tools=messages, sampling=samplings)
asks = st.one_of(
    st.builds(Load, st.builds(LoadOptions, path=paths)),
    st.builds(Attach, st.builds(LoadOptions, path=paths)),
    st.builds(Generate, requests),
    st.from_type(Cancel),
    st.from_type(View),
)
failures = st.builds(Failure, details=st.dictionaries(st.text(), st.integers() | st.text() | st.none(), max_size=3))
answers = st.one_of(failures, *(st.from_type(kind) for kind in (Progress, Loaded, Begun, Events, Viewed, Alive, Ended)))


def back(message: Any) -> Any:
    (again,) = read_messages(io.BytesIO(pack(message)), type(message))
    return again


@given(st.builds(Call, st.integers(), asks) | st.builds(Reply, st.integers(), answers))
def test_messages_come_back_as_they_were(message: Call | Reply) -> None:
    assert repr(back(message)) == repr(message)  # by what they show, since NaN equals nothing


@pytest.mark.parametrize(
    "kind",
    [v for m in (events, request) for v in vars(m).values() if isinstance(v, type) and dataclasses.is_dataclass(v)],
)
def test_every_dataclass_of_the_base_can_travel(kind: type) -> None:
    assert codec(kind).schema.startswith(f"{kind.__name__}(")


def test_whole_numbers_pass_for_real_ones() -> None:
    again = cast(Generate, back(Call(1, Generate(Request(now=5, prompt="x")))).ask)
    assert isinstance(again.request.now, float)


ERRORS: tuple[LocalrunError, ...] = (
    NotFoundError("no such model", "pull it"),
    PromptTooLongError("too long"),
    ConstraintError("no such grammar", "correct it"),
    ToolSchemaError("no such schema", "correct it"),
    ModelFileError("BAD_MAGIC", "not a GGUF file", path="/x.gguf", offset=4),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.kind)
def test_errors_come_back_as_the_same_kind(error: LocalrunError) -> None:
    again = as_error(back(Reply(0, as_failure(error))).answer)
    assert type(again) is type(error)
    assert (vars(again), str(again)) == (vars(error), str(error))


def test_an_error_of_an_unknown_kind_is_an_engine_error() -> None:
    assert type(as_error(Failure("new kind", "it broke", "", {}))) is EngineError


class Strange:
    pass


endless: list[Any] = []
endless.append(endless)


@pytest.mark.parametrize(
    "wrong",
    [
        Request(messages=({"role": "user", "content": Strange()},)),
        Request(messages=({"role": "user", "content": b"bytes"},)),
        Request(messages=({"role": "user", "content": endless},)),
        Request(prompt=cast(str, 5)),
        Request(prompt="x", max_tokens=cast(int, "5")),
        Request(prompt="x", max_tokens=True),
        Request(prompt="x", think=cast(Literal["on"], "perhaps")),
        Request(prompt="x", stop=cast(tuple[str, ...], ["a"])),
        Request(prompt="x", now=10**400),
        Request(prompt="x", known_ids=(1, True)),
        Request(prompt="x", known_ids=cast(tuple[int, ...], (1, "2"))),
    ],
    ids=["object", "bytes", "endless", "number", "text", "bool", "word", "list", "time", "bool id", "text id"],
)
def test_what_cannot_travel_is_refused_before_it_is_sent(wrong: Request) -> None:
    with pytest.raises(WireError):
        pack(Call(1, Generate(wrong)))


def test_a_message_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_BODY", 1000)
    with pytest.raises(WireError, match="more than fit"):
        pack(Call(1, Generate(Request(prompt="x" * 1000))))


def frame(body: bytes, shape: int = wire.SHAPE, length: int | None = None) -> bytes:
    return shape.to_bytes(4, "little") + (len(body) if length is None else length).to_bytes(4, "little") + body


GOOD = ["Reply", 1, ["Alive"]]


@pytest.mark.parametrize(
    "data",
    [
        b"torch: a warning on stdout\n",
        frame(b"", length=0xFFFFFFFF),
        frame(json.dumps(GOOD).encode(), shape=wire.SHAPE ^ 1),
        frame(json.dumps(GOOD).encode(), length=1000),
        frame(b""),
        frame(b"\xff\xfe"),
        frame(b"["),
        frame(b"[" * 200_000),
        frame(b"1" * 100_000),
        frame(b"null"),
        frame(b'{"Reply": 1}'),
        frame(b'["Call", 1, ["View"]]'),
        frame(b'["Reply", 1]'),
        frame(b'["Reply", 1, ["Alive"], 2]'),
        frame(b'["Reply", "1", ["Alive"]]'),
        frame(b'["Reply", true, ["Alive"]]'),
        frame(b'["Reply", 1, ["Unheard"]]'),
        frame(b'["Reply", 1, ["Load", []]]'),
        frame(b'["Reply", 1, [["Alive"]]]'),
        frame(b'["Reply", 1, ["Events", [["Token", 1, "a", "shout"]]]]'),
        frame(b'["Reply", 1, ["Events", {"0": 1}]]'),
    ],
    ids=lambda data: repr(bytes(data[:40])),
)
def test_what_is_no_message_is_one_error(data: bytes) -> None:
    with pytest.raises(WireError):
        list(read_messages(io.BytesIO(data), Reply))


def test_torn_frames_at_every_byte() -> None:
    whole = pack(Reply(1, Events((Prefill(1, 0, 2, "ü"), Token(5, "ö\ud800", "answer")))))
    for end in range(1, len(whole)):
        with pytest.raises(WireError):
            list(read_messages(io.BytesIO(whole[:end]), Reply))
        good, *rest = iterate_until_error(whole + whole[:end])
        assert good == next(read_messages(io.BytesIO(whole), Reply))
        assert not rest


def iterate_until_error(data: bytes) -> list[Reply]:
    found: list[Reply] = []
    messages = read_messages(io.BytesIO(data), Reply)
    with pytest.raises(WireError):
        found.extend(messages)
    return found


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 255))
def test_damage_is_an_error_or_a_message(junk: bytes, at: int, byte: int) -> None:
    data = bytearray(pack(Reply(1, Events((Token(5, "hello", "answer"),)))) + junk)
    data[at % len(data)] = byte
    try:
        for message in read_messages(io.BytesIO(bytes(data)), Reply):
            assert isinstance(message, Reply)
    except WireError:
        pass


def test_a_length_that_lies_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            list(read_messages(io.BytesIO(frame(b"xyz", length=wire.MAX_BODY)), Reply))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_the_name_of_the_messages_spells_every_field() -> None:
    schema = codec(Reply).schema
    for kind in (Completion, Done, ModelInfo, CacheView, Alive):
        assert all(f"{field.name}: " in schema for field in dataclasses.fields(kind))
    assert "Literal('answer', 'thinking')" in schema
    assert all(f"{field.name}: " in codec(Call).schema for field in dataclasses.fields(LoadOptions))


def test_unions_of_plain_values() -> None:
    both = codec(int | None)
    assert [both.decode(both.encode(value)) for value in (5, None)] == [5, None]
    with pytest.raises(WireError):
        both.decode("5")
    event = codec(Event)
    assert event.decode(event.encode(Token(None, "x", "thinking"))) == Token(None, "x", "thinking")
    with pytest.raises(TypeError):
        codec(set[int])
