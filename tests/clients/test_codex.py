"""codex, which speaks Responses, and sends thousands of tokens of instructions and tools before the first question."""

import json
from typing import Any

import httpx
import pytest
from localrun_testing.cli import Ran
from localrun_testing.client_programs import GEMMA, Client
from localrun_testing.fake_client import FakeClient

from localrun.base.events import ToolCall

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.xdist_group("clients")]
EXEC = ("exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only")


def said(ran: Ran) -> tuple[str, dict[str, Any]]:
    """Its last message, and what it counted."""
    assert ran.code == 0, ran
    events = [json.loads(line) for line in ran.out.splitlines() if line.startswith("{")]
    texts = [event["item"]["text"] for event in events if event.get("item", {}).get("type") == "agent_message"]
    (turn,) = [event for event in events if event["type"] == "turn.completed"]
    return texts[-1], turn["usage"]


def test_a_session_goes_on_where_it_was(pupil: Client, fake: FakeClient) -> None:
    text, usage = said(pupil.launch("codex", "--", *EXEC, "~~one"))
    assert text == "one"
    assert usage["output_tokens"] == 5
    text, _ = said(pupil.launch("codex", "--", "exec", "resume", "--last", *EXEC[1:3], "two"))
    assert text == "two"
    told = [str(message["content"]) for message in fake.requests[-1].messages]
    assert [words for words in told if words in ("~~one", "one", "two")] == ["~~one", "one", "two"]


@pytest.mark.parametrize("provider", ["ollama", "lmstudio"])
def test_its_open_source_mode_takes_the_server_for_another(provider: str, pupil: Client) -> None:
    mode = ("--oss", "--local-provider", provider, "-m", "builtin")
    ran = pupil.run("codex", *EXEC, *mode, "three", CODEX_OSS_BASE_URL=f"{pupil.url}/v1")
    assert said(ran)[0] == "three"


def test_a_model_whose_name_it_knows_calls_the_tools_of_an_item(pupil: Client, fake: FakeClient) -> None:
    """It sends them in another place then, and has one that takes a program."""
    program = ToolCall("call_1", "exec", json.dumps({"input": 'text("six by seven: " + 6 * 7)'}))
    fake.calls = lambda request: () if "six by seven: 42" in str(request.messages) else (program,)
    provider = f'model_providers.here={{name="here", base_url="{pupil.url}/v1", wire_api="responses"}}'
    ran = pupil.run("codex", *EXEC, "-c", provider, "-c", 'model_provider="here"', "-m", "gpt-5.6-sol", "four")
    assert said(ran)[0].startswith("Script completed")
    assert "exec" in [tool["function"]["name"] for tool in fake.requests[-1].tools]


def test_a_model_reads_its_instructions_once(client: Client) -> None:
    """Gemma 3 270M, which knows nothing of turns, and may write until there is no room: codex calls that an error."""
    before = counted(client, "prompt_tokens_total")
    first = client.launch("codex", "--model", GEMMA, "--", *EXEC, "Say hello.")
    read, cached = counted(client, "prompt_tokens_total") - before, counted(client, "cached_tokens_total")
    assert read > 3_000, first
    second = client.launch("codex", "--", "exec", "resume", "--last", *EXEC[1:3], "And good-bye.")
    for ran in (first, second):
        assert ran.code == 0 or "max_output_tokens" in ran.out, ran
    assert counted(client, "cached_tokens_total") - cached > 0.9 * read


def counted(client: Client, name: str) -> float:
    """What the server has counted of codex' calls."""
    lines = httpx.get(f"{client.url}/metrics", timeout=None).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"localrun_{name} "))
