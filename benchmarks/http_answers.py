"""Streamed answers of a server that speaks OpenAI's protocol, with the time of every piece."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

ANSWER_TOKENS = 96
SEED = 1
ALWAYS = {"stream": True, "stream_options": {"include_usage": True}, "seed": SEED}


@dataclass
class Heard:
    """One streamed answer: seconds since it was asked for, of the headers, of each piece of text and of the end.
    `figures` is what the server tells of its work, in its own form."""

    headers: float = 0.0
    pieces: list[float] = field(default_factory=list)
    end: float = 0.0
    text: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Tokens a second from the first piece to the last, as the client sees them."""
        return (self.usage["completion_tokens"] - 1) / (self.pieces[-1] - self.pieces[0])

    @property
    def first(self) -> float:
        """Seconds to the first piece; to the end of an answer without a text."""
        return self.pieces[0] if self.pieces else self.end

    @property
    def gaps(self) -> list[float]:
        return [b - a for a, b in zip(self.pieces, self.pieces[1:], strict=False)]

    @property
    def computed(self) -> int:
        """Tokens of the prompt that were not cached."""
        return int(self.figures["computed"] if "computed" in self.figures else self.figures["prompt_n"])

    def took(self, *parts: str) -> float:
        """Milliseconds of parts of the answer, as our server tells them."""
        return float(sum(self.figures[f"{part}_ms"] for part in parts))

    @property
    def read_ms(self) -> float:
        """Milliseconds of reading them."""
        return float(self.figures["prefill_ms"] if "prefill_ms" in self.figures else self.figures["prompt_ms"])


async def ask(
    client: httpx.AsyncClient,
    said: str | Sequence[Mapping[str, str]],
    tokens: int = ANSWER_TOKENS,
    headers: Mapping[str, str] | None = None,
    **fields: Any,
) -> Heard:
    """The answer to a question or a conversation, of `tokens` tokens or fewer."""
    messages = [{"role": "user", "content": said}] if isinstance(said, str) else list(said)
    body = {**ALWAYS, "messages": messages, "max_tokens": tokens, **fields}
    heard, asked = Heard(), time.perf_counter()
    async with client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as response:
        heard.headers = time.perf_counter() - asked
        async for chunk in _chunks(response):
            heard.figures = chunk.get("localrun") or chunk.get("timings") or heard.figures
            heard.usage = chunk.get("usage") or heard.usage
            deltas = [choice["delta"] for choice in chunk["choices"]]
            if text := "".join(one.get("content") or one.get("reasoning_content") or "" for one in deltas):
                heard.pieces.append(time.perf_counter() - asked)
                heard.text += text
        heard.end = time.perf_counter() - asked
    return heard


async def ask_at_once(client: httpx.AsyncClient, questions: Sequence[str], tokens: int, **fields: Any) -> list[Heard]:
    """Answers to several questions that come together."""
    return await asyncio.gather(*(ask(client, question, tokens, **fields) for question in questions))


async def _chunks(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    response.raise_for_status()
    async for line in response.aiter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def p95(values: list[float]) -> float:
    """The figure that 19 of 20 are below, or as much."""
    return sorted(values)[int(0.95 * len(values))]
