"""A prompt that is stopped half way: what the app then shows is what the engine really did, wherever it shows it."""

from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import CHOICE, chat_screen, ready, send
from localrun_testing.pilots import LARGE, drive, screen_text, until
from textual.pilot import Pilot

from localrun.base.request import LoadOptions, ProgressCallback
from localrun.base.resources import resource
from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice
from localrun.client.local import LocalClient
from localrun_tui.app import LocalrunApp

BUILTIN = Path(resource("builtin/localrun-tiny.gguf"))


def test_its_figures_are_those_of_the_work_that_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[LocalClient] = []
    done: list[int] = []  # tokens of the prompt that were computed, after each step

    def open_client(choice: ModelChoice, progress: ProgressCallback) -> LocalClient:
        client = LocalClient(LoadOptions(BUILTIN, name=CHOICE.stored.name, ctx=1024))
        monkeypatch.setattr(client.model.engine.scheduler, "max_rows", 64)
        run = client.model.engine.runner.run

        def stop_in_the_third(plan: Any, *rest: Any) -> Any:
            done.append(plan.n_rows)
            if len(done) == 3:
                for work in plan.work:
                    client.model.engine.generations.handles[work.sequence.number].cancel()
            return run(plan, *rest)

        monkeypatch.setattr(client.model.engine.runner, "run", stop_in_the_third)
        clients.append(client)
        return client

    app = LocalrunApp(open_client, lambda: ChatStore(None), lambda: CHOICE)

    async def steps(pilot: Pilot[Any]) -> None:
        await ready(pilot)
        await pilot.press("ctrl+g")
        await send(pilot, "word " * 700)
        session = chat_screen(pilot).session
        await until(pilot, lambda: session.turn is not None and not session.answering)
        held = clients[0].view().n_tokens
        assert held in (sum(done[:2]), sum(done[:3]))
        assert 0 < held < 700
        await until(pilot, lambda: f"KV cache  {held:,} of 1,024 tokens" in screen_text(app))
        await until(pilot, lambda: "reading" not in screen_text(app))
        await until(pilot, lambda: f" {1024 - held:,} left" in screen_text(app))
        assert session.turn is not None
        assert session.turn.done is not None
        completion = session.turn.done.completion
        assert (completion.prompt_tokens or 0) > 700
        assert completion.cache.computed_tokens == held
        assert completion.timings.prefill_tps == pytest.approx(1000 * held / completion.timings.prefill_ms)

    drive(app, steps, LARGE)
