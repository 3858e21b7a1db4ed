"""Answers of a form, asked for in every protocol."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import httpx
import jsonschema  # type: ignore[import-untyped]
import ollama
import openai
import pydantic
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.protocols import PROTOCOLS, deltas, frames, question
from localrun_testing.served import Served, serving
from localrun_testing.waiting import PATIENCE

from localrun.base.constraint import ANY_OBJECT, Constraint, of_schema
from localrun.base.request import LoadOptions
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.engine import constraints


class Trip(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    city: str = pydantic.Field(max_length=30)
    days: Literal[1, 2, 3]


SCHEMA = Trip.model_json_schema()
LOOSE = {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 3, "uniqueItems": True}


def wish(path: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The fields that ask for a schema."""
    match path:
        case "/v1/chat/completions" | "/v1/completions":
            return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, **more}}}
        case "/v1/responses":
            return {"text": {"format": {"type": "json_schema", "name": "x", "schema": schema, **more}}}
        case "/v1/messages":
            return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    return {"format": schema}


@pytest.fixture(scope="module")
def engine() -> Iterator[Served]:
    """A server with the model inside localrun."""
    path = Path(resource("localrun/builtin/localrun-tiny.gguf"))
    with LocalClient(LoadOptions(path, name="builtin", ctx=1024)) as client, serving(lambda choice: client) as served:
        yield served


def ask(served: Served, path: str, body: dict[str, Any], max_tokens: int = 120) -> httpx.Response:
    asked = {**question(path, "Where to?", max_tokens=max_tokens, seed=5), **body}
    return httpx.post(f"{served.url}{path}", json=asked, timeout=120)


@pytest.mark.parametrize("path", PROTOCOLS)
def test_an_answer_holds_to_its_schema(engine: Served, path: str) -> None:
    stream = ask(engine, path, {**wish(path, SCHEMA), "stream": True})
    assert stream.status_code == 200, stream.text
    text = "".join(deltas(path, frames(stream.text)))
    jsonschema.validate(json.loads(text), SCHEMA)
    assert json.dumps(text)[1:-1] in json.dumps(ask(engine, path, wish(path, SCHEMA)).json()), "whole, it is the same"


@pytest.mark.parametrize("path", PROTOCOLS)
def test_a_keyword_that_cannot_be_held_to_is_named_or_noted(engine: Served, path: str) -> None:
    takes_strict = path.startswith("/v1") and path != "/v1/messages"
    if takes_strict or path == "/v1/messages":
        refused = ask(engine, path, wish(path, LOOSE, strict=True))
        assert (refused.status_code, "uniqueItems" in refused.text) == (400, True)
        if takes_strict:
            assert refused.json()["error"]["param"] == next(iter(wish(path, LOOSE))).replace("text", "text.format")
    if path != "/v1/messages":
        noted = ask(engine, path, wish(path, LOOSE)).json()
        assert any("uniqueItems" in note for note in noted["localrun"]["notes"])


@pytest.mark.parametrize("path", PROTOCOLS)
def test_what_takes_too_much_computing_is_the_requests_fault(
    engine: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients try again what fails with 500."""
    monkeypatch.setattr(constraints, "COMPILE_SECONDS", PATIENCE)  # a busy machine is not the request's fault
    monkeypatch.setattr(constraints, "INITIAL_FUEL", constraints.INITIAL_FUEL // 10)  # to end sooner
    refused = ask(engine, path, wish(path, {"type": "string", "pattern": "^(a{1000}){1000}$"}))
    assert (refused.status_code, "too much computing" in refused.text) == (400, True)


def test_clients_get_what_they_parse(engine: Served) -> None:
    with openai.OpenAI(base_url=f"{engine.url}/v1", api_key="any", max_retries=0) as client:
        chat = client.chat.completions.parse(
            model="builtin", messages=[{"role": "user", "content": "Where to?"}], response_format=Trip, max_tokens=120
        )
        assert isinstance(chat.choices[0].message.parsed, Trip)
        response = client.responses.parse(model="builtin", input="Where to?", text_format=Trip, max_output_tokens=120)
        assert isinstance(response.output_parsed, Trip)
        assert response.text
        assert response.text.format
        assert response.text.format.type == "json_schema"
    said = ollama.Client(engine.url).generate("builtin", "Where to?", format=SCHEMA, options={"num_predict": 120})
    assert Trip.model_validate_json(said.response or "")


@pytest.mark.parametrize(
    ("path", "fields", "constraint"),
    [
        ("/v1/chat/completions", {"response_format": {"type": "json_object"}}, ANY_OBJECT),
        (
            "/v1/chat/completions",
            {"response_format": {"type": "json_object", "schema": LOOSE}},
            of_schema(LOOSE, is_lenient=True),
        ),
        ("/v1/chat/completions", {"response_format": {"type": "text"}}, None),
        ("/v1/chat/completions", {"structured_outputs": {"json": SCHEMA}}, of_schema(SCHEMA)),
        ("/v1/chat/completions", {"structured_outputs": {"choice": ["a", "b.c"]}}, Constraint("regex", r"a|b\.c")),
        ("/v1/completions", {"guided_regex": "[ab]+"}, Constraint("regex", "[ab]+")),
        ("/v1/completions", {"guided_grammar": 'start: "a"'}, Constraint("lark", 'start: "a"')),
        ("/v1/responses", {"text": {"format": {"type": "json_object"}}}, ANY_OBJECT),
        ("/v1/messages", wish("/v1/messages", SCHEMA), of_schema(SCHEMA)),
        ("/v1/messages", {"output_format": {"type": "json_schema", "schema": SCHEMA}}, of_schema(SCHEMA)),
        ("/api/chat", {"format": "json"}, ANY_OBJECT),
        ("/api/chat", {"format": ""}, None),
        ("/api/generate", {"format": SCHEMA}, of_schema(SCHEMA, is_lenient=True)),
    ],
)
def test_fields_say_what_holds(
    fake: FakeClient, http: httpx.Client, path: str, fields: dict[str, Any], constraint: Constraint | None
) -> None:
    answer = http.post(path, json={**question(path, "hi"), **fields})
    assert answer.status_code == 200, answer.text
    assert fake.requests[-1].constraint == constraint


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/v1/chat/completions", {"response_format": {"type": "yaml"}}, "response_format.type"),
        ("/v1/chat/completions", {"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ("/v1/chat/completions", {"structured_outputs": {"json": "x"}}, "structured_outputs.json"),
        ("/v1/completions", {"guided_regex": 5}, "guided_regex"),
        ("/v1/responses", {"text": {"format": {"type": "json_schema", "schema": [1]}}}, "text.format.schema"),
        ("/v1/messages", {"output_config": {"format": {"type": "text"}}}, "output_config.format.type"),
        ("/api/chat", {"format": "yaml"}, "format"),
        ("/api/chat", {"format": {"multipleOf": 1e300}}, "format"),
    ],
)
def test_wrong_fields_are_named(http: httpx.Client, path: str, fields: dict[str, Any], param: str) -> None:
    answer = http.post(path, json={**question(path, "hi"), **fields})
    assert answer.status_code == 400
    error = answer.json()["error"]
    said = error if isinstance(error, str) else error["message"]
    assert said.startswith(f"{param}: ")
