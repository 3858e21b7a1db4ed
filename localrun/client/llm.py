"""The Python surface: one model, a few calls."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from localrun.base.errors import UsageError
from localrun.base.events import Completion, Done, Token
from localrun.base.options import python_spelling
from localrun.base.request import LoadOptions, Message, Request, Sampling

LOAD_OPTIONS = ("backend", "threads", "ctx", "kv", "window", "prefix_cache", "disk_cache")
REQUEST_OPTIONS = ("max_tokens", "stop", "think", "tools")
SAMPLING_OPTIONS = tuple(Sampling.__dataclass_fields__)


class LLM:
    """A model to generate with. Weights load at the first call; calls on one LLM reuse each other's prefixes.

    `options` of the constructor: backend, threads, ctx, kv, window, prefix_cache, disk_cache (bytes). Those of a call:
    max_tokens, stop, think, tools, and every field of Sampling. An unknown one is a UsageError.
    """

    def __init__(self, model: str | Path = "builtin", **options: Any) -> None:
        known(options, LOAD_OPTIONS)
        self.model = model
        self.options = options
        self._client: Any = None

    def generate(self, prompt: str, **options: Any) -> Completion:
        """Answer a prompt as one user message."""
        return self.chat([{"role": "user", "content": prompt}], **options)

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Answer the last of several messages ({"role": …, "content": …})."""
        with python_spelling():
            for event in self._events(messages, options):
                if isinstance(event, Done):
                    return event.completion
        raise AssertionError("a generation always ends with Done")

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        """The answer to a prompt, piece by piece. Leaving the iterator early cancels the rest."""
        with python_spelling():
            for event in self._events([{"role": "user", "content": prompt}], options):
                if isinstance(event, Token) and event.channel == "answer" and event.text:
                    yield event.text

    def close(self) -> None:
        """Free the model; the next call loads it again."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> "LLM":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _events(self, messages: Sequence[Message], options: dict[str, Any]) -> Iterator[Any]:
        known(options, REQUEST_OPTIONS + SAMPLING_OPTIONS)
        sampling = Sampling(**{name: value for name, value in options.items() if name in SAMPLING_OPTIONS})
        rest = {name: value for name, value in options.items() if name in REQUEST_OPTIONS}
        for name in ("stop", "tools"):
            if name in rest:
                rest[name] = (rest[name],) if isinstance(rest[name], str) else tuple(rest[name])
        return iter(
            self._loaded().generate(Request(messages=tuple(messages), sampling=sampling, chat_id="python", **rest))
        )

    def _loaded(self) -> Any:
        if self._client is None:
            from localrun.client.local import LocalClient
            from localrun.hub.resolve import resolve

            found = resolve(str(self.model))
            self._client = LocalClient(
                LoadOptions(path=found.path, name=found.name, precision=found.precision, **self.options)
            )
        return self._client


def known(options: dict[str, Any], names: Sequence[str]) -> None:
    unknown = sorted(set(options) - set(names))
    if unknown:
        raise UsageError(f"unknown option {', '.join(unknown)}", f"known options: {', '.join(sorted(names))}")
