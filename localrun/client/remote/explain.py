"""Topics of `explain` that a server can be measured for from here: by its answers, their times and its counts."""

import secrets
from collections.abc import Callable

from localrun.base.events import Completion, Done
from localrun.base.request import Request, RequestMessage, Sampling
from localrun.client.interface import EngineClient
from localrun.client.remote.bench import ServerCase, bench_server
from localrun.diagnose.explain.texts import SAMPLE
from localrun.diagnose.explain.topic_report import Bars, Figure, TopicReport
from localrun.diagnose.explain.words import WORDS

PROMPT, ANSWER, ROUNDS, TURNS = 512, 32, 2, 4
CALLERS = (1, 2, 4)
MOST_SENTENCES = 4  # of a turn
KEY_TOKENS = 24  # of a turn, at most: a name that no cache has, spelled in a small vocabulary

TellProgress = Callable[[str], None]
ServerTopic = Callable[[EngineClient, TellProgress], TopicReport]


def phases(client: EngineClient, watch: TellProgress) -> TopicReport:
    """Time to the first token of a long prompt, and of those after it."""
    prompt = min(PROMPT, client.info.ctx // 2) if client.info.ctx else PROMPT
    read, written = bench_server(client, [ServerCase("prefill", prompt), ServerCase("decode", ANSWER)], ROUNDS, watch)
    then = 1000 / written.tps_median
    figures = (
        Figure("first token of a long prompt (TTFT)", "ms", "", None, read.ttft_ms),
        Figure("first token of a short one", "ms", "", None, written.ttft_ms),
        Figure("each token after it (ITL)", "ms", "", None, then),
        Figure("tokens a second, prompt", "tok/s", "", None, read.tps_median),
        Figure("tokens a second, answer", "tok/s", "", None, written.tps_median),
    )
    pictures = (Bars("Tokens a second", "tok/s", {"prompt": read.tps_median, "answer": written.tps_median}),)
    conclusion = "The times are those of here: the network and the server's queue are in them."
    return _report("phases", figures, pictures, conclusion)


def reuse(client: EngineClient, watch: TellProgress) -> TopicReport:
    """A chat whose turns begin alike, and the last of them with another beginning."""
    messages: list[RequestMessage] = []
    turns: list[Completion] = []
    chat, sentences = secrets.token_hex(8), _sentences(client)
    for turn in range(TURNS):
        watch(f"turn {turn + 1} of {TURNS}")
        messages.append({"role": "user", "content": f"{chat} {turn + 1}. {SAMPLE * sentences}"})
        turns.append(_ask(client, messages, chat))
        messages.append({"role": "assistant", "content": turns[-1].text or "…"})
    other = [{**messages[0], "content": f"{secrets.token_hex(8)} {messages[0]['content']}"}, *messages[1:-1]]
    changed = _ask(client, other, chat)
    last, found = turns[-1], turns[-1].cached_tokens
    figures = (
        Figure("tokens of the last turn's prompt", "tokens", "", None, last.prompt_tokens),
        Figure("of these found in the cache", "tokens", "", None, found),
        Figure("first token of that turn after", "ms", "", None, last.timings.ttft_ms),
        Figure("the same with another beginning", "ms", "", None, changed.timings.ttft_ms),
    )
    waits = {f"turn {number}": turn.timings.ttft_ms for number, turn in enumerate(turns, 1)}
    pictures = (Bars("First token after", "ms", {**waits, "turn 4, another beginning": changed.timings.ttft_ms}),)
    unsaid = "" if found is not None else " This server does not count what it finds: only the times tell."
    return _report("reuse", figures, pictures, f"A change near the beginning makes all after it new.{unsaid}")


def batch(client: EngineClient, watch: TellProgress) -> TopicReport:
    """Answers to several callers at once."""
    runs = bench_server(client, [ServerCase("decode", ANSWER, n) for n in CALLERS], ROUNDS, watch)
    rates = {f"{run.case.batch} at once": run.tps_median for run in runs}
    figures = tuple(Figure(f"tokens a second, {name}", "tok/s", "", None, rate) for name, rate in rates.items())
    gain = runs[-1].tps_median / runs[0].tps_median
    conclusion = (
        f"{CALLERS[-1]} callers get {gain:.1f} times the tokens of one: what the server reads serves all of them."
    )
    return _report("batch", figures, (Bars("Tokens a second, all callers", "tok/s", rates),), conclusion)


ON_SERVER: dict[str, ServerTopic] = {"phases": phases, "reuse": reuse, "batch": batch}


def _sentences(client: EngineClient) -> int:
    """Sentences of a turn with which all of them fit the context, if that is known."""
    view = client.preview(Request(({"role": "user", "content": SAMPLE},)))
    tokens = view.n_tokens if view else len(SAMPLE) // 2  # as many as a small vocabulary makes of it
    room = client.info.ctx // (TURNS + 1) - ANSWER - 2 * KEY_TOKENS
    return max(1, min(MOST_SENTENCES, room // tokens)) if client.info.ctx else MOST_SENTENCES


def _ask(client: EngineClient, messages: list[RequestMessage], chat: str) -> Completion:
    request = Request(tuple(messages), None, Sampling(temperature=0.0), ANSWER // 2, chat_id=chat, priority="api")
    return next(event.completion for event in client.generate(request) if isinstance(event, Done))


def _report(topic: str, figures: tuple[Figure, ...], pictures: tuple[Bars, ...], conclusion: str) -> TopicReport:
    words = WORDS[topic]
    return TopicReport(topic, words.title, words.text, figures, pictures, conclusion)
