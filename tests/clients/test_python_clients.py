"""litellm, which makes one protocol of many, and llm, for the command line."""

import json
from pathlib import Path

import pytest
from localrun_testing.client_programs import SMOL, Client

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.xdist_group("clients")]
QUESTION = "What is the capital of Italy?"


def test_litellm(client: Client) -> None:
    script = Path(__file__).with_name("with_litellm.py")
    ran = client.run("python", script, client.url, SMOL, LITELLM_LOCAL_MODEL_COST_MAP="True")
    assert ran.code == 0, ran
    answers = json.loads(ran.out.splitlines()[-1])
    assert set(answers) == {"openai", "anthropic", "ollama", "responses"}
    for protocol, (whole, streamed, read) in answers.items():
        assert whole == streamed == answers["openai"][0] != "", protocol
        assert read == answers["openai"][2] > 0, protocol


def test_llm_without_a_setup(client: Client) -> None:
    asked = ("-o", "temperature", "0", "-o", "max_tokens", "12", QUESTION)
    launched = client.launch("llm", "--model", SMOL, "--", *asked)
    by_responses = client.launch("llm", "--model", SMOL, "--", "--responses", *asked[:2], "0", QUESTION)
    assert launched.code == by_responses.code == 0, (launched, by_responses)
    assert launched.out == by_responses.out != "\n"


def test_llm_goes_on_with_a_conversation(client: Client) -> None:
    folder = client.home / "llm"
    folder.mkdir()
    (folder / "extra-openai-models.yaml").write_text(
        f"- {{model_id: mine, model_name: {SMOL}, api_base: '{client.url}/v1', api_key_name: none}}\n"
    )
    asked = ("-m", "mine", "-o", "temperature", "0", "-o", "max_tokens", "12")
    variables = {"LLM_USER_PATH": str(folder), "OPENAI_API_KEY": "any"}
    first = client.run("llm", "prompt", *asked, QUESTION, **variables)
    second = client.run("llm", "prompt", "--continue", "And of Spain?", **variables)
    logged = client.run("llm", "logs", "--json", "--count", "2", **variables)
    assert first.code == second.code == logged.code == 0, (first, second, logged)
    begun, gone_on = sorted(json.loads(logged.out), key=lambda one: one["datetime_utc"])
    assert begun["conversation_id"] == gone_on["conversation_id"]
    assert [begun["response"], gone_on["response"]] == [first.out.strip(), second.out.strip()]
    assert gone_on["input_tokens"] > begun["input_tokens"] + begun["output_tokens"], "what was said is asked again"
