"""Opening of a client from flags and settings: the model on disk, load options, sampling."""

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, fields, replace
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from localrun.base.constraint import Constraint
from localrun.base.dataclass import dataclass
from localrun.base.errors import NotFoundError
from localrun.base.request import Json, Think
from localrun.base.settings import Settings, read_settings
from localrun.chat.chat_settings import settings_of, think_of
from localrun.chat.conversation import Chat
from localrun.chat.presets import sampling_of
from localrun.chat.turn import TurnOptions
from localrun.cli.console import is_terminal, note
from localrun.cli.groups import AnswerOptions, EngineFlags, HubOptions, LoadOptionFlags, ModelOptions
from localrun.client.choice import ModelChoice
from localrun.client.interface import EngineClient
from localrun.client.open_client import open_client, open_local
from localrun.hub.catalogue import BUILTIN
from localrun.hub.disk.stored import StoredModel
from localrun.hub.load_options import load_options
from localrun.hub.resolve import resolve

if TYPE_CHECKING:
    from localrun.client.local import LocalClient


def settings_with(*flags: Any, chat: Chat | None = None) -> Settings:
    """Merge LOCALRUN_* and config.toml, then the settings of `chat`, then the flags that were typed."""
    known = {field.name for field in fields(Settings)}
    typed = {field.name: getattr(group, field.name) for group in flags for field in fields(group)}
    settings = read_settings() if chat is None else settings_of(chat, read_settings())
    return replace(settings, **{key: v for key, v in typed.items() if key in known and v is not None})


def find_model(options: ModelOptions) -> StoredModel:
    """Find the named model, else the default one, else `builtin`."""
    default = read_settings().model
    name = options.model or default
    if name is None and is_terminal(sys.stderr):
        note(f"{BUILTIN} answers, the small model inside localrun; `localrun tui` shows larger ones that fit here")
    try:
        return resolve(name or BUILTIN, options.precision)
    except NotFoundError as error:
        if options.model is None and default is not None:
            way_out = f"`localrun config model {BUILTIN}` chooses the built-in one"
            raise NotFoundError(f"{error.message}; it is the default model, {way_out}", error.hint) from None
        raise


def find_or_pull(options: ModelOptions, hub: HubOptions) -> StoredModel:
    """Find the model on disk, or download it with --pull or the consent of a person at the terminal."""
    try:
        return find_model(options)
    except NotFoundError as error:
        from localrun.cli.consent import pull_missing

        return pull_missing(options, hub, error)


def find_choice(
    options: ModelOptions, hub: HubOptions, load: LoadOptionFlags, server: str | None = None
) -> ModelChoice:
    """Choose the model of a named server, or one on disk as `find_or_pull` finds it."""
    if server is None:
        stored = find_or_pull(options, hub)
        return ModelChoice(stored, stored.precision, adapters=load.adapters)
    from localrun.cli.server_choice import on_server

    return on_server(server, options.model, {"precision": options.precision, **asdict(load)})


def open_engine(choice: ModelChoice, flags: EngineFlags, program: str) -> EngineClient:
    """Open the engine that answers: that of a running localrun where it holds the same model, else a new one.

    What a stored chat computes is stored too. `program` is the command, for the localrun that shares its engine.
    """
    return open_client(
        choice,
        settings_with(flags),
        prefix_cache=not flags.no_prefix_cache,
        disk_cache=bool(choice.chat_id),
        attach_as="" if flags.no_attach else program,
        tell=note,
    )


def open_measured(stored: StoredModel, flags: LoadOptionFlags, draft: str = "off") -> "LocalClient":
    """Open an engine in this process for measurements; nothing that it computes is stored, and a step decodes a token,
    unless a `draft` is asked for."""
    options = load_options(
        stored,
        settings_with(flags),
        prefix_cache=not flags.no_prefix_cache,
        disk_cache=False,
        adapters=flags.adapters or (),
    )
    return open_local(stored, replace(options, draft=draft))


@dataclass(frozen=True, slots=True)
class Answering:
    """State that all requests of one command share. `as_data`: a program reads the output, as JSON."""

    flags: AnswerOptions
    as_data: bool = False

    def __post_init__(self) -> None:
        self.options()  # report bad options before a model is loaded

    @property
    def system(self) -> str | None:
        return settings_with(self.flags).system

    def options(
        self, chat: Chat | None = None, constraint: Constraint | None = None, tools: tuple[Json, ...] = ()
    ) -> TurnOptions:
        """The options of an answer: as typed, else of `chat`, else of the settings."""
        settings = settings_with(self.flags, chat=chat)
        for_a_person = is_terminal(sys.stdout) and not self.as_data
        think = cast(Think, self.flags.think)
        return TurnOptions(
            sampling=replace(sampling_of(settings), logit_bias=dict(self.flags.logit_bias or ())),
            max_tokens=settings.max_tokens,
            stop=self.flags.check_stop(),
            think=think_of(chat) if chat is not None and think == "auto" else think,
            stop_on_loop=for_a_person if settings.stop_on_loop is None else settings.stop_on_loop,
            constraint=constraint,
            tools=tools,
        )


class Cancellable(Protocol):
    """A running answer, with or without tools."""

    def cancel(self) -> None: ...


CancellableT = TypeVar("CancellableT", bound=Cancellable)


class CancelOnInterrupt(AbstractContextManager["CancelOnInterrupt"]):
    """Let Ctrl-C cancel the running answer instead of the program; a second Ctrl-C ends the program.

    Where the signal is ignored, as for a background job of a shell, it stays ignored.
    """

    def __init__(self) -> None:
        self._generation: Cancellable | None = None
        self.pressed = False

    def watch(self, generation: CancellableT) -> CancellableT:
        """Set the answer that Ctrl-C cancels."""
        self._generation = generation
        if self.pressed:  # before there was anything to cancel
            generation.cancel()
        return generation

    def __enter__(self) -> "CancelOnInterrupt":
        self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
        if self._previous is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        around = getattr(self._previous, "__self__", None)
        if isinstance(around, CancelOnInterrupt):  # pressed before the answer began: it is to be cancelled, too
            self.pressed = around.pressed
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True
        if self._generation is not None:
            # A thread of its own: the handler may stand inside a lock of this thread that cancelling needs.
            threading.Thread(target=self._generation.cancel, daemon=True).start()


T = TypeVar("T")


def unless_interrupted(work: Callable[[], T], otherwise: T) -> T:
    """The result of `work`, or `otherwise` where Ctrl-C comes first; the answer is cancelled then, too."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return work()
    except KeyboardInterrupt:
        note("")
        if callable(before):
            before(signal.SIGINT, None)
        return otherwise
    finally:
        signal.signal(signal.SIGINT, before)
