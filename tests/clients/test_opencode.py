"""opencode, which speaks chat completions, and asks for a title beside every first answer."""

import pytest
from localrun_testing.client_programs import Client
from localrun_testing.fake_client import FakeClient

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.xdist_group("clients")]


def test_run(pupil: Client, fake: FakeClient) -> None:
    ran = pupil.launch("opencode", "--", "run", "say one")
    assert ran.code == 0, ran
    assert "say one" in ran.out
