"""Which refusals the SDKs try again: those that time may mend."""

from collections.abc import Callable
from pathlib import Path

import anthropic
import openai
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import Served

from localrun.base.errors import DoesNotFitError, EngineDiedError, LocalrunError, ModelFileError
from localrun.base.request import LoadOptions, Request
from localrun.server.refusal import Refusal, busy, refusal_of, stopping

DAMAGED = ModelFileError("truncated", "the file ends amid a tensor")
HI = {"role": "user", "content": "hi"}


def fail(request: Request) -> str:
    raise DAMAGED


@pytest.fixture(scope="module")
def fake() -> FakeClient:
    return FakeClient(LoadOptions(Path()), fail)


def by_openai(url: str, path: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=1) as client:
        client.post(path, body={"messages": [HI], "input": "hi"}, cast_to=object)


def by_anthropic(url: str, path: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key="any", max_retries=1) as client:
        client.post(path, body={"messages": [HI], "max_tokens": 5}, cast_to=object)


@pytest.mark.parametrize(
    ("ask", "path", "error"),
    [
        (by_openai, "/chat/completions", openai.InternalServerError),
        (by_openai, "/responses", openai.InternalServerError),
        (by_anthropic, "/v1/messages", anthropic.InternalServerError),
    ],
)
def test_a_damaged_file_is_asked_for_once(
    served: Served, fake: FakeClient, ask: Callable[[str, str], None], path: str, error: type[Exception]
) -> None:
    """Left alone, both try each error of a server again, twice."""
    fake.requests.clear()
    with pytest.raises(error, match="amid a tensor"):
        ask(served.url, path)
    assert len(fake.requests) == 1


@pytest.mark.parametrize("error", [DAMAGED, DoesNotFitError("it takes 90 GiB of 24")])
def test_what_time_does_not_mend_says_so(error: LocalrunError) -> None:
    assert refusal_of(error).headers == {"x-should-retry": "false"}


@pytest.mark.parametrize("refusal", [busy(64), stopping(), refusal_of(EngineDiedError("it was killed"))])
def test_what_time_mends_says_when(refusal: Refusal) -> None:
    assert refusal.headers == {"retry-after": "1"}
