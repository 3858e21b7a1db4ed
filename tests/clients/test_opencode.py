"""opencode, which speaks chat completions, and asks for a title beside its first answer."""

import pytest
from localrun_testing.client_programs import Client
from localrun_testing.fake_client import FakeClient, last_words

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.xdist_group("clients")]


def test_a_session_goes_on_where_it_was(pupil: Client, fake: FakeClient) -> None:
    first = pupil.launch("opencode", "--", "run", "~~one")
    second = pupil.launch("opencode", "--", "run", "--continue", "two")
    assert first.code == second.code == 0, (first, second)
    assert "one" in first.out
    assert "~" not in first.out, "that is thinking"
    assert "two" in second.out
    (asked,) = [request for request in fake.requests if "two" in last_words(request)]
    assert [message["role"] for message in asked.messages] == ["system", "user", "assistant", "user"]
    assert asked.messages[2]["content"] == "one"
    assert asked.tools, "it offers tools, which are shown to the model"
