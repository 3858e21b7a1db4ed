"""`localrun.LLM`: what is meant works, and what is not is named in Python's own words."""

import dataclasses
import enum
import gc
import json
import math
import re
import typing
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from localrun_testing.fake_chat_server import fake_chat_server
from localrun_testing.waiting import PATIENCE, until

import localrun
from localrun.base.errors import LocalrunError, NotFoundError, UsageError
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.client.llm import Options
from localrun.client.local import LocalClient
from localrun.client.schemas import schema_of


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


def test_generate_chat_and_stream_answer() -> None:
    with localrun.LLM("builtin", ctx=512) as llm:
        first = llm.generate("Hello!", temperature=0, max_tokens=8)
        assert first.ctx == 512
        assert first.text
        assert "".join(llm.stream("Hello!", temperature=0, max_tokens=8)) == first.text
        assert first.prompt_tokens is not None
        assert llm.generate("Hello!", temperature=0, max_tokens=8).cached_tokens == first.prompt_tokens - 1
        assert llm.chat([{"role": "user", "content": "Hello!"}], temperature=0, max_tokens=8).text == first.text
        stop = first.text[4:7]
        ended = llm.generate("Hello!", temperature=0, max_tokens=8, stop=stop)
        assert ended.text == first.text[: first.text.index(stop)]
        assert llm.generate("Hello!", temperature=0, max_tokens=8, stop=[stop]).text == ended.text
        assert llm.generate("Hello!", max_tokens=1, stop_on_loop=True, logit_bias={5: -1.0}, seed=3).seed == 3


def test_a_precision_is_chosen() -> None:
    with localrun.LLM("builtin", precision="Q8_0", ctx=64) as llm:
        assert llm.generate("Hi", max_tokens=1).precision == "Q8_0"
    with pytest.raises(NotFoundError, match="Q2_K"):
        localrun.LLM("builtin", precision="Q2_K").generate("Hi")


def test_every_option_of_a_request_has_an_argument() -> None:
    asked = {*Sampling.__dataclass_fields__, *Request.__dataclass_fields__}
    ours = {"messages", "prompt", "sampling", "known_ids", "now", "overflow", "chat_id", "continues"}
    ours |= {"prompt_ids", "add_bos", "verbatim", "logprobs", "prompt_logprobs"}  # of raw prompts, which the server has
    ours |= {"images"}  # an argument of its own
    ours |= {"ctx", "priority", "deadline", "gather_ms", "allowed_tools", "described_tools"}  # of many clients
    assert set(Options.__annotations__) == asked - ours - {"constraint"} | {"schema", "lenient", "regex", "grammar"}
    arguments = typing.get_type_hints(localrun.LLM.__init__)
    named = set(arguments) | ({"adapters"} if "lora" in arguments else set())
    assert set(LoadOptions.__dataclass_fields__) - {"path", "name", "chat_id", "parallel"} <= named
    assert Any not in arguments.values()


@pytest.mark.parametrize(
    "options",
    [
        *({"ctx": value} for value in ("big", 0, -1, 2.5, True, "512")),
        *({"threads": value} for value in (-1, 0, "all")),
        *({"window": value} for value in (1, "wide")),
        *({"kv": value} for value in ("q5", 8, None)),
        *({"backend": value} for value in ("gpu", None)),
        *({"prefix_cache": value} for value in (None, "yes")),
        *({"disk_cache": value} for value in (-1, 1.5, "8G", True)),
        *({"precision": value} for value in (None, 4)),
        *({"model": value} for value in (5, b"builtin")),
        *({"server": value} for value in (5, b"lab")),
    ],
)
def test_a_wrong_argument_is_named_before_anything_loads(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(UsageError, match=f"^{name} is ") as caught:
        localrun.LLM(**options)
    assert "needed" in caught.value.hint


@pytest.mark.parametrize(
    "options",
    [
        *({"temperature": value} for value in ("hot", -3, math.nan)),
        *({"top_p": value} for value in (7, "x")),
        *({"max_tokens": value} for value in (0, -1, 1.5, "many")),
        *({"repeat_penalty": value} for value in (0, math.inf)),
        *({"seed": value} for value in (-1, 0.5)),
        *({"stop": value} for value in ("", [""], [5], 5, b"x", None)),
        *({"tools": value} for value in (5, None)),
        *({"think": value} for value in (True, "yes")),
        *({"stop_on_loop": value} for value in ("no", 1)),
        *({"logit_bias": value} for value in ([1], {-1: 1.0}, {10**6: 1.0}, {1: math.nan}, None)),
    ],
)
def test_a_wrong_option_of_a_call_is_named(llm: localrun.LLM, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(UsageError, match=rf"^{name}\b.* is ") as caught:
        llm.generate("Hello!", **options)
    assert "needed" in caught.value.hint
    with pytest.raises(UsageError, match=rf"^{name}\b.* is "):
        llm.stream("Hello!", **options)  # at once, not at the first piece


@pytest.mark.parametrize("prompt", [None, b"hi", 5, ["hi"]])
def test_a_prompt_is_a_text(llm: localrun.LLM, prompt: Any) -> None:
    with pytest.raises(UsageError, match=r"^prompt is "):
        llm.generate(prompt)
    with pytest.raises(UsageError, match=r"^prompt is "):
        llm.stream(prompt)


@pytest.mark.parametrize("messages", [None, "hi", 5, ["hi"], [{"content": "hi"}], {"role": "user"}])
def test_messages_are_a_list_of_turns(llm: localrun.LLM, messages: Any) -> None:
    with pytest.raises(UsageError, match="message"):
        llm.chat(messages)


def test_what_there_is_not_is_unknown(llm: localrun.LLM) -> None:
    with pytest.raises(UsageError, match="unknown option temprature") as caught:
        llm.generate("Hello!", temprature=0)  # type: ignore[call-arg]
    assert "temperature" in caught.value.hint
    with pytest.raises(TypeError, match="context"):
        localrun.LLM("builtin", context=512)  # type: ignore[call-arg]


def test_hints_name_arguments(llm: localrun.LLM) -> None:
    with pytest.raises(LocalrunError) as caught:
        llm.generate("word " * 3000)
    assert "ctx" in caught.value.hint
    assert not re.search(r"--\w", caught.value.message + caught.value.hint)


@pytest.fixture(scope="module")
def llm() -> typing.Iterator[localrun.LLM]:
    with localrun.LLM("builtin", ctx=512) as llm:
        yield llm


def test_an_unreferenced_llm_ends_its_thread() -> None:
    llm = localrun.LLM("builtin", ctx=512)
    pieces = llm.stream("Tell me a story", max_tokens=400)
    next(pieces)
    assert isinstance(llm._client, LocalClient)
    thread = llm._client.model.engine.thread
    del llm, pieces
    gc.collect()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_stream_that_is_left_ends(llm: localrun.LLM) -> None:
    for _ in llm.stream("Tell me a story", max_tokens=400):
        break
    assert isinstance(llm._client, LocalClient)
    engine = llm._client.model.engine
    until(lambda: not engine.generations.handles)


def test_the_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (example,) = re.findall(r"```python\n(import localrun.*?)```", readme, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert len(capsys.readouterr().out) > 10


@dataclasses.dataclass
class Place:
    name: str
    near: "list[Place]" = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Trip:
    to: Place
    days: int
    by: typing.Literal["train", "car"]
    mood: Mood | None
    share: float = 0.5
    at: tuple[int, int] = (0, 0)
    costs: dict[str, float] = dataclasses.field(default_factory=dict)
    open: bool = True


class PydanticTrip:
    """Has what localrun asks of a class of pydantic."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"type": "object", "properties": {"days": {"enum": [1, 2]}}, "required": ["days"]}


def test_schemas_of_types_are_those_of_their_values() -> None:
    schema = schema_of(Trip)
    trip = dataclasses.asdict(Trip(Place("Rome", [Place("Ostia")]), 2, "car", None))
    trip["at"] = list(trip["at"])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(trip, schema)
    for name, wrong in {
        "days": "2",
        "by": "foot",
        "mood": "odd",
        "to": {"near": []},
        "at": [1],
        "costs": {"a": "b"},
    }.items():
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**trip, name: wrong}, schema)
    for needless in ("share", "at", "costs", "open"):
        jsonschema.validate({name: value for name, value in trip.items() if name != needless}, schema)
    with pytest.raises(UsageError, match="set"):
        schema_of(dataclasses.make_dataclass("Odd", [("x", set[int])]))


@pytest.mark.parametrize("wish", [PydanticTrip, PydanticTrip.model_json_schema(), Trip])
def test_an_answer_holds_to_its_schema(llm: localrun.LLM, wish: Any) -> None:
    answer = llm.generate("Where to?", schema=wish, seed=1, max_tokens=400, logit_bias={34: 3.0})
    if answer.stop_reason == "stop":
        jsonschema.validate(json.loads(answer.text), schema_of(wish))
    assert answer.text.startswith("{")
    assert llm.generate("Which?", regex="[ab]{3}", max_tokens=9).text.strip("ab") == ""
    assert llm.generate("Which?", grammar='start: "yes" | "no"', max_tokens=9).text in ("yes", "no")
    with pytest.raises(UsageError, match="uniqueItems"):
        llm.generate("x", schema={"type": "array", "uniqueItems": True})
    loose = llm.generate("x", schema={"type": "array", "uniqueItems": True, "maxItems": 2}, lenient=True, max_tokens=2)
    assert any("uniqueItems" in note for note in loose.notes)


def test_a_model_of_a_server_answers(home: Path) -> None:
    with fake_chat_server() as server:
        with localrun.LLM(server=server.url) as llm:
            assert llm.generate("Hi", max_tokens=9).text == "Hello, wörld"
            assert "".join(llm.stream("Hi")) == "Hello, wörld"
        assert (server.seen[-1].body["model"], server.seen[1].body["max_tokens"]) == ("tiny", 9)
        localrun.LLM("big", server=server.url).generate("Hi")
        assert server.seen[-1].body["model"] == "big"
        with pytest.raises(NotFoundError, match="has no model huge"):
            localrun.LLM("huge", server=server.url).generate("Hi")
    with pytest.raises(UsageError, match="the server's choice"):
        localrun.LLM(server=server.url, ctx=512)
    with pytest.raises(NotFoundError, match="there is no server nowhere"):
        localrun.LLM(server="nowhere").generate("Hi")
