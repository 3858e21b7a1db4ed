"""Measure a server as its callers see it: time to the first token and rates, network and queue included."""

import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

from localrun.base.dataclass import dataclass
from localrun.base.errors import EngineError
from localrun.base.events import Completion, Done, Token
from localrun.base.request import Request, Sampling
from localrun.client.interface import EngineClient

_WORD = " river"
_FEW, _MANY = 16, 80  # of these, to find out how many tokens one is
_BEGINNING = 24  # tokens of each prompt, about: its own beginning, and the template
_KEY = 8  # characters that no two prompts share


@dataclass(frozen=True, slots=True)
class ServerCase:
    """`n` tokens to read or to write, by `batch` callers at once."""

    kind: Literal["prefill", "decode"]
    n: int
    batch: int = 1


@dataclass(frozen=True, slots=True)
class ServerRun:
    """A measured case: tokens a second over all callers by round, and the median time to the first token."""

    case: ServerCase
    tps: tuple[float, ...]
    ttft_ms: float

    @property
    def tps_median(self) -> float:
        return statistics.median(self.tps)


def bench_server(
    client: EngineClient, cases: Sequence[ServerCase], repeats: int, progress: Callable[[str], None]
) -> list[ServerRun]:
    """Run all cases `repeats` times in turn, after a round that warms up. Raises LocalrunError."""
    a_word = _tokens_a_word(client)
    rates: list[list[float]] = [[] for _ in cases]
    firsts: list[list[float]] = [[] for _ in cases]
    for repeat in range(repeats + 1):
        for number, case in enumerate(cases):
            progress(f"round {repeat} of {repeats}: {case.kind} {case.n}, {case.batch} at once")
            rate, first = _round(client, case, a_word)
            if repeat:
                rates[number].append(rate)
                firsts[number].append(first)
    measured = zip(cases, rates, firsts, strict=True)
    return [ServerRun(case, tuple(rate), statistics.median(first)) for case, rate, first in measured]


def _round(client: EngineClient, case: ServerCase, a_word: float) -> tuple[float, float]:
    """Tokens a second, and milliseconds to the first token, of one round."""
    with ThreadPoolExecutor(case.batch) as callers:
        began = time.perf_counter()
        answers = list(callers.map(partial(_answer, client, case), [a_word] * case.batch))
    firsts = [first - began for first, _, _ in answers]
    if case.kind == "prefill":
        n_read = sum((done.prompt_tokens or case.n) - (done.cached_tokens or 0) for _, _, done in answers)
        return n_read / max(firsts), 1000 * statistics.median(firsts)
    n_written = sum(done.completion_tokens - 1 for _, _, done in answers)
    seconds = max(last for _, last, _ in answers) - min(first for first, _, _ in answers)
    if n_written < 1 or seconds <= 0:
        raise EngineError("the server wrote too little to be measured", "try a longer answer: -n 64")
    return n_written / seconds, 1000 * statistics.median(firsts)


def _tokens_a_word(client: EngineClient) -> float:
    """Tokens that a word of the prompts takes; 1 where the server does not count ahead."""
    short, long = (client.preview(_request(_WORD * n, 1)) for n in (_FEW, _MANY))
    return max((long.n_tokens - short.n_tokens) / (_MANY - _FEW), 0.25) if short and long else 1.0


def _request(text: str, max_tokens: int) -> Request:
    message = {"role": "user", "content": text}
    return Request((message,), None, Sampling(temperature=1.0), max_tokens, chat_id=text[:_KEY], priority="api")


def _answer(client: EngineClient, case: ServerCase, a_word: float) -> tuple[float, float, Completion]:
    """Times of the first and the last piece, and the answer. No prompt begins as another did: none is cached."""
    begins = f"{secrets.token_hex(4)}. Write about rivers, at length."
    is_long = case.kind == "prefill"
    text = begins + (_WORD * max(round((case.n - _BEGINNING) / a_word), 0) if is_long else "")
    request = _request(text, 1 if is_long else case.n + 1)
    times = []
    for event in client.generate(request):
        match event:
            case Token():
                times.append(time.perf_counter())
            case Done(completion):
                times = times or [
                    time.perf_counter()
                ]  # a single token may have no text, as that which begins a thought
                return times[0], times[-1], completion
            case _:
                pass
    raise AssertionError("a generation always ends with Done")
