"""`localrun serve`: answer other programs over HTTP."""

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.paths import what_is_not_kept, writable_folder
from localrun.base.request import ProgressCallback
from localrun.base.sanitize import clean
from localrun.base.startup import switch_threads_often
from localrun.cli.completion import complete_word
from localrun.cli.console import note, write_json
from localrun.cli.failure import CANCELLED
from localrun.cli.groups import AnsweringFlags, HubOptions, ModelArgument, ModelOptions, checked, switch
from localrun.cli.session import find_choice, settings_with
from localrun.client.choice import ModelChoice
from localrun.client.interface import EngineClient
from localrun.client.model_slot import ModelSlot
from localrun.client.open_client import check_ahead, open_client
from localrun.hub.resolve import resolve_listed
from localrun.server.options import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    KEEP_ALIVE_SECONDS,
    KEY_VARIABLE,
    ServerOptions,
    origin,
    port_number,
    read_aliases,
    seconds,
)

if TYPE_CHECKING:
    from localrun.server.monitor.live import LiveRequest

_PANEL = "The server"


def _parallel(value: object) -> int | None:
    text = str(value)
    if text == "auto":
        return None
    if not text.isdecimal() or not 1 <= int(text) <= 1_024:
        raise ValueError("auto, or a number from 1 to 1024 is needed")
    return int(text)


def _option(name: str, parse: Any, metavar: str, help: str) -> Any:
    return typer.Option(
        name, parser=checked(parse, metavar), metavar=metavar, help=help, rich_help_panel=_PANEL, show_default=False
    )


def _text(name: str, metavar: str, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, rich_help_panel=_PANEL, show_default=False)


@dataclass(frozen=True, slots=True)
class ServerFlags:
    """Options of the server: where it listens, and what it allows."""

    host: Annotated[str, _text("--host", "ADDRESS", f"listen there (default: {DEFAULT_HOST})")] = DEFAULT_HOST
    port: Annotated[int, _option("--port", port_number, "N", f"0 chooses a free port (default: {DEFAULT_PORT})")] = (
        DEFAULT_PORT
    )
    socket: Annotated[str, _text("--socket", "PATH", "listen on a Unix socket instead")] = ""
    api_key: Annotated[
        str, _text("--api-key", "KEY", f"key that every request must send (default: {KEY_VARIABLE}, else none)")
    ] = ""
    allow_origin: Annotated[
        list[str] | None,
        _option("--allow-origin", origin, "URL", "allow requests from web pages of this site; repeatable"),
    ] = None
    parallel: Annotated[
        int | None, _option("--parallel", _parallel, "auto|N", "answers computed at once (default: auto)")
    ] = None
    keep_alive: Annotated[
        Any,
        typer.Option(
            "--keep-alive",
            parser=checked(seconds, "TIME"),
            metavar="TIME",
            help="unload an idle model after this time: 5m, 90 (seconds), -1 for never (default: 5m)",
            rich_help_panel=_PANEL,
            show_default=False,
            autocompletion=complete_word("5m", "1h", "-1"),
        ),
    ] = KEEP_ALIVE_SECONDS
    alias: Annotated[
        list[str] | None,
        _text("--alias", "NAME[=MODEL]", "another name for a model, or for the loaded one; repeatable"),
    ] = None
    any_model: Annotated[bool, switch("--any-model", "the loaded model answers to every name", _PANEL)] = False
    no_swap: Annotated[bool, switch("--no-swap", "never load another model", _PANEL)] = False
    manage: Annotated[bool, switch("--manage", "download and delete models when clients ask for it", _PANEL)] = False
    store_disk: Annotated[bool, switch("--store-disk", "keep stored responses on disk", _PANEL)] = False
    no_disk: Annotated[bool, switch("--no-disk", "keep nothing of conversations on disk", _PANEL)] = False

    def _aliases(self) -> dict[str, str]:
        """The aliases that were typed.

        Raises UsageError for a malformed one, NotFoundError for a model that is not on disk.
        """
        try:
            aliases = read_aliases(self.alias or ())
        except ValueError as error:
            raise UsageError(f"--alias {error}", "as in --alias gpt-4o=qwen3-4b") from None
        for model in filter(None, aliases.values()):
            resolve_listed(model)
        return aliases

    def options(self) -> ServerOptions:
        return ServerOptions(
            host=self.host,
            port=self.port,
            socket=self.socket,
            api_key=self.api_key or os.environ.get(KEY_VARIABLE, ""),
            allow_origins=tuple(self.allow_origin or ()),
            parallel=self.parallel,
            keep_alive=self.keep_alive,
            aliases=self._aliases(),
            any_model=self.any_model,
            no_swap=self.no_swap,
            manage=self.manage,
            store_disk=self.store_disk,
            no_disk=self.no_disk,
        )


def serve(
    named: ModelArgument = None,
    *,
    jsonl: Annotated[bool, switch("--jsonl", "print the address on stdout, as JSON")] = False,
    quiet: Annotated[bool, switch("--quiet", "no line on stderr for each request")] = False,
    until_stdin_ends: Annotated[bool, typer.Option("--until-stdin-ends", hidden=True)] = False,
    server: ServerFlags,
    model: ModelOptions,
    hub: HubOptions,
    load: AnsweringFlags,
) -> int:
    """Answer other programs over HTTP, in the protocols of OpenAI, Anthropic and Ollama."""
    choice = find_choice(replace(model, model=named or model.model), hub, load)
    log = _say_nothing if quiet else log_request
    switch_threads_often()
    return asyncio.run(_serve(choice, server.options(), load, jsonl, log, until_stdin_ends))


async def _serve(
    choice: ModelChoice,
    options: ServerOptions,
    load: AnsweringFlags,
    jsonl: bool,
    log: Callable[["LiveRequest"], None],
    until_stdin_ends: bool,
) -> int:
    """Listen, load, and answer until a signal stops the server."""
    from localrun.client.attach.owner import announced
    from localrun.server.listen import HttpServer, address_of, bound, stop_as_stdin_ends, stopped_by_signals
    from localrun.server.models import ModelHost
    from localrun.server.service import Service
    from localrun.server.shared_engine import sharing

    settings = settings_with(load)

    def open_model(choice: ModelChoice, progress: ProgressCallback) -> EngineClient:
        return open_client(
            choice,
            settings,
            progress,
            apart=True,
            prefix_cache=not load.no_prefix_cache,
            disk_cache=not options.no_disk,
            parallel=options.parallel,
        )

    def check(choice: ModelChoice, freed: int) -> None:
        check_ahead(choice, settings, freed)

    models = ModelHost(ModelSlot(open_model), choice, options, check)
    service = Service(models, options, log)
    server = HttpServer(service)
    if until_stdin_ends:
        stop_as_stdin_ends(server)
    with bound(options) as listener, stopped_by_signals(server) as signals:
        if options.store_disk and writable_folder("cache") is None:
            note(f"responses are kept in memory only: {what_is_not_kept('cache')}")
        url = address_of(listener)
        try:
            if await server.unless_stopped(models.load()):
                note(f"localrun listens on {url or options.socket}")
                if jsonl:
                    write_json({"type": "listening", "url": url, "socket": options.socket})
                with sharing(service) as engine, announced(url, options.socket, engine):
                    await server.serve([listener])
        finally:
            await models.close()
    return CANCELLED if signal.SIGINT in signals else 0


def _say_nothing(live: "LiveRequest") -> None:
    pass


def log_request(live: "LiveRequest") -> None:
    """Log a finished request in one line on stderr: who ended it and how many tokens; no text of it."""
    seconds, tokens = time.monotonic() - live.began, ""
    if live.prompt_tokens:
        read = f"{live.read_tokens} of {live.prompt_tokens} tokens read, {live.cached_tokens} of them cached"
        tokens = f", {read}, {live.written_tokens} written"
    client = f" for {clean(live.client, keep_newlines=False)}" if live.client else ""
    if _is_taken(sys.stderr):  # else all answers would wait with the line
        note(f"{time.strftime('%H:%M:%S')} {live.protocol}{client}: {live.ended} after {seconds:.1f} s{tokens}")


def _is_taken(stream: TextIO) -> bool:
    """Whether somebody takes what is written: a pipe may be full, and a terminal stopped with Ctrl-S."""
    if os.name != "posix":
        return True
    try:
        return bool(select.select((), (stream,), (), 0)[1])
    except (OSError, ValueError):  # no file of the system
        return True
