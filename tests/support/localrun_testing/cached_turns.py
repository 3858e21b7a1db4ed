"""A chat of ten turns with edits in front of a server: cached tokens of each answer beside the server's own counter."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from localrun.base.events import Completion, Done
from localrun.base.request import Sampling
from localrun.chat.conversation import Chat
from localrun.chat.journal import ChatStore
from localrun.chat.turn import Answer, TurnOptions, begin_turn
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint

_HITS = re.compile(
    r"^(?:vllm:prefix_cache_hits_total|llamacpp:prompt_tokens_cached_total|localrun_cached_tokens_total)"
    r"(?:\{.*\})? (\S+)$",
    re.MULTILINE,
)
_OPTIONS = TurnOptions(Sampling(temperature=0.0), max_tokens=12)
_EDITS = {4: 2, 8: 5}  # at this turn, the question that is asked in other words: all after it is another branch
_SETTLED = 10.0  # seconds that an engine has to count what it has answered


@dataclass(frozen=True, slots=True)
class CachedTurn:
    """Cached tokens of a prompt, as the answer tells them, and as the server's counter has grown; None: not told."""

    prompt: int | None
    told: int | None
    counted: int | None


def ten_turns(url: str, model: str, folder: Path) -> list[CachedTurn]:
    """Ask ten questions in one kept chat; two of them take the place of earlier ones."""
    client = RemoteClient(Endpoint("engine", url, model=model))
    chat = ChatStore(folder).create()
    questions: list[str] = []
    turns = []
    for number in range(10):
        text = f"Turn {number}: {'the river is wide, and the night is long; ' * 7}what is it?"
        asked = chat.edit(questions[_EDITS[number]], text) if number in _EDITS else chat.add_user(text)
        questions = [*questions[: _EDITS.get(number, number)], asked.id]
        before = _hits(url)
        done = _answered(chat, asked.id, client)
        counted = None if before is None else _grown(url, before, done.cached_tokens)
        turns.append(CachedTurn(done.prompt_tokens, done.cached_tokens, counted))
    return turns


def _answered(chat: Chat, question: str, client: RemoteClient) -> Completion:
    request, _ = begin_turn(chat, question, _OPTIONS, client.info.ctx)
    answer = Answer(chat, question, request, client.info)
    for event in client.generate(request):
        answer.take(event)
    answer.keep()
    assert isinstance(answer.done, Done)
    return answer.done.completion


def _hits(url: str) -> int | None:
    try:
        with urlopen(f"{url.removesuffix('/v1')}/metrics", timeout=10) as page:
            found = _HITS.findall(page.read().decode())
    except HTTPError:
        return None
    return round(sum(map(float, found))) if found else None


def _grown(url: str, before: int, wanted: int | None) -> int:
    """Growth of the counter, once it is what is wanted, or does not become it."""
    latest = time.monotonic() + _SETTLED
    while (grown := (_hits(url) or 0) - before) != wanted and time.monotonic() < latest:
        time.sleep(0.1)
    return grown
