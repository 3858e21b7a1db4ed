"""Vercel's AI SDK, which opencode is built on, in each protocol that it speaks."""

from pathlib import Path

import pytest
from localrun_testing.client_programs import SMOL, Client

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.xdist_group("clients")]


def test_whole_answers_and_streams(client: Client) -> None:
    ran = client.run("node", Path(__file__).with_name("ai_sdk.mjs"), client.url, SMOL)
    assert ran.code == 0, ran
    answers = {answer.pop("protocol"): answer for answer in ran.lines}
    held = answers.pop("schema")["object"]
    assert set(held) == {"city", "people"}
    assert 0 < held["people"] < 10_000
    assert set(answers) == {"chat", "responses", "compatible", "messages"}
    for protocol, answer in answers.items():
        assert answer["whole"] == answers["chat"]["whole"] != "", protocol
        assert "".join(answer["pieces"]) == answer["whole"], protocol
        assert answer["reasons"] == ["stop", "stop"], protocol
        read, *again = answer["tokens"][:2]
        assert again == [read], protocol
        assert answer["cached"] == read - 1, "the whole answer was to the same prompt"
