"""A chat goes on with the model that it was held with."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from localrun_testing.chat_app import CHOICE, ask, chat_screen, notice, type_text
from localrun_testing.pilots import drive, screen_text, until, until_done, until_text
from localrun_testing.scripted_client import INFO, ScriptedClient
from textual.message import Message
from textual.pilot import Pilot

from localrun.base.adapter_choice import AdapterChoice, read_adapter
from localrun.base.errors import NotFoundError
from localrun.base.request import ProgressCallback
from localrun.chat.chat_settings import HeldWith, held_with
from localrun.chat.journal import ChatStore
from localrun.client.choice import ModelChoice, choice_of
from localrun.hub.disk.stored import StoredModel
from localrun_tui.app import LocalrunApp
from localrun_tui.state import continue_chat

OTHER = ModelChoice(StoredModel("gemma", "Q8_0", Path("/models/gemma.gguf"), 1, "gguf", "models"), "Q8_0", 4096)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[ModelChoice]:
    """What is loaded, in turn."""
    known = {"gemma": OTHER, "qwen3-4b": CHOICE}

    def find(held: HeldWith, present: ModelChoice | None = None) -> ModelChoice | None:
        choice = known.get(held.model)
        return choice and replace(choice, adapters=tuple(map(read_adapter, held.adapters)) or None)

    monkeypatch.setattr(continue_chat, "choice_of", find)
    return []


def app_with(
    loads: list[ModelChoice],
    folder: Path,
    flags: Mapping[str, Any] | None = None,
    go_on: bool = False,
    choose: Callable[[], ModelChoice] = lambda: CHOICE,
) -> LocalrunApp:
    def open_client(choice: ModelChoice, progress: ProgressCallback) -> ScriptedClient:
        loads.append(choice)
        return ScriptedClient(info=replace(INFO, name=choice.stored.name, precision=choice.precision))

    return LocalrunApp(open_client, lambda: ChatStore(folder), choose, None, flags, go_on)


@pytest.mark.parametrize(
    ("flags", "first"),
    [({}, OTHER), ({"ctx": 512}, replace(OTHER, ctx=512)), ({"model": "qwen3-4b", "ctx": 512}, CHOICE)],
)
def test_the_app_goes_on_with_the_last_chat_by_its_model_unless_another_is_named(
    flags: dict[str, Any], first: ModelChoice, loads: list[ModelChoice], tmp_path: Path
) -> None:
    store = ChatStore(tmp_path)
    store.create(model="qwen3-4b").add_user("an older one")
    chat = store.create(model="gemma", precision="Q8_0")
    chat.add_answer(chat.add_user("why is the sky blue?").id, "It scatters.")
    store.close()
    app = app_with(loads, tmp_path, flags, go_on=True)

    async def steps(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: chat_screen(pilot).session.info)
        await until_text(pilot, "It scatters.")
        await ask(pilot, "and at night?")
        assert chat_screen(pilot).session.chat is not None

    drive(app, steps)
    assert loads == [replace(first, chat_id=chat.id)]
    assert len(ChatStore(tmp_path).open(chat.id).tree) == 4


def test_a_chat_goes_on_by_its_model_though_the_usual_one_is_gone(loads: list[ModelChoice], tmp_path: Path) -> None:
    chat = ChatStore(tmp_path).create(model="gemma", precision="Q8_0")
    chat.add_answer(chat.add_user("why is the sky blue?").id, "It scatters.")

    def choose() -> ModelChoice:
        raise NotFoundError("there is no model qwen3-4b")

    app = app_with(loads, tmp_path, go_on=True, choose=choose)

    async def steps(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: chat_screen(pilot).session.info)
        await until_text(pilot, "It scatters.")
        assert notice(pilot) == ""

    drive(app, steps)
    assert loads == [replace(OTHER, chat_id=chat.id)]


def test_without_a_chat_to_go_on_with_there_is_a_new_one(loads: list[ModelChoice], tmp_path: Path) -> None:
    app = app_with(loads, tmp_path, go_on=True)

    async def steps(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: chat_screen(pilot).session.info)
        await until_text(pilot, "Ask anything.")

    drive(app, steps)
    assert loads == [CHOICE]


def test_a_chat_brings_its_model_along_and_another_takes_it_back(loads: list[ModelChoice], tmp_path: Path) -> None:
    app = app_with(loads, tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await until(pilot, lambda: session.info)
        await ask(pilot, "first")
        first = session.chat.id if session.chat else ""
        await session.new_chat()
        await session.load(OTHER)
        await ask(pilot, "second")
        second = session.chat.id if session.chat else ""
        await session.open_chat(first)
        await until(pilot, lambda: session.info and session.info.name == "qwen3-4b")
        await session.open_chat(second)
        await until(pilot, lambda: session.info and session.info.name == "gemma")
        assert [(one.stored.name, one.ctx) for one in loads[1:]] == [
            ("gemma", 4096),
            ("qwen3-4b", None),
            ("gemma", 4096),
        ]
        await session.open_chat(second)
        assert len(loads) == 4, "the same is not loaded again"

    drive(app, steps)
    store = ChatStore(tmp_path)
    held = {held_with(store.open(one.id)) for one in store.summaries()}
    assert held == {HeldWith("qwen3-4b", "Q4_K_M"), HeldWith("gemma", "Q8_0", 4096)}


def test_each_chat_has_the_adapters_that_it_was_held_with(loads: list[ModelChoice], tmp_path: Path) -> None:
    half = (AdapterChoice(Path("/a.gguf"), 0.5),)
    app = app_with(loads, tmp_path)

    async def lora(pilot: Pilot[Any], text: str) -> None:
        await type_text(pilot, f"/lora {text}")
        chat_screen(pilot).composer.submit()

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await until(pilot, lambda: session.info)
        await lora(pilot, "/a.gguf:0.5")
        await until(pilot, lambda: session.present and session.present.adapters == half)
        app.clear_notifications()  # which stand over the first line
        await until_text(pilot, "Q4_K_M · + a")
        await ask(pilot, "first")
        first = session.chat.id if session.chat else ""
        await session.new_chat()
        await lora(pilot, "none")
        await until(pilot, lambda: session.present and session.present.adapters == ())
        await until(pilot, lambda: "· + a" not in screen_text(app))
        await ask(pilot, "second")
        await session.open_chat(first)
        await until(pilot, lambda: session.present and session.present.adapters == half)

    drive(app, steps)
    assert [choice.adapters or () for choice in loads] == [(), half, (), half]


def test_a_chat_goes_on_with_the_present_model_of_a_path() -> None:
    """Which no list of models has: it was held with other adapters."""
    present = ModelChoice(StoredModel("mine", "Q8_0", Path("/elsewhere/mine.gguf"), 1, "gguf", "models"), "Q8_0")
    held = HeldWith("mine", "Q8_0", adapters=("/a.gguf:0.5",))
    assert choice_of(held, present) == replace(present, adapters=(AdapterChoice(Path("/a.gguf"), 0.5),))
    assert choice_of(replace(held, model="another"), present) is None


def test_a_new_chat_stays_with_a_model_that_calls_itself_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also when the question is on disk before the screen hears of the chat."""
    client = ScriptedClient(info=replace(INFO, name="its own name"))
    app = LocalrunApp(lambda choice, progress: client, lambda: ChatStore(tmp_path), lambda: CHOICE)

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await until(pilot, lambda: session.info)
        told: list[Message] = []
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(session, "post", told.append)
            chat = await session.new_chat()
            chat.add_user("first")
        for message in told:
            session.post(message)
        await until_done(pilot)
        assert "not here any more" not in notice(pilot)

    drive(app, steps)


def test_a_model_that_is_gone_is_told_and_the_present_one_answers(loads: list[ModelChoice], tmp_path: Path) -> None:
    chat = ChatStore(tmp_path).create(model="long-gone")
    chat.add_user("hello")
    app = app_with(loads, tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await until(pilot, lambda: session.info)
        await session.open_chat(chat.id)
        await until(pilot, lambda: "long-gone, with which this chat was held, is not here any more" in notice(pilot))
        assert len(loads) == 1

    drive(app, steps)


def test_what_was_left_open_is_whatever_it_is_and_nothing_is_loaded_again(
    loads: list[ModelChoice], tmp_path: Path
) -> None:
    """As after a start: the chat was held with the f16 that its precision menu showed, the app begins with auto."""
    store = ChatStore(tmp_path)
    chat = store.create(model=CHOICE.stored.name)
    chat.add_user("hello")
    chat.set(precision=CHOICE.precision, kv=INFO.kv_codec, ctx=0)
    other = store.create(model=CHOICE.stored.name)
    other.add_user("hello")
    other.set(precision=CHOICE.precision, kv="q4", ctx=0)
    app = app_with(loads, tmp_path)

    async def steps(pilot: Pilot[Any]) -> None:
        session = chat_screen(pilot).session
        await until(pilot, lambda: session.info)
        await session.open_chat(chat.id)
        await until_done(pilot)
        assert len(loads) == 1
        assert not notice(pilot)
        await session.open_chat(other.id)
        await until(pilot, lambda: len(loads) == 2)
        await until(pilot, lambda: session.info and not notice(pilot))

    drive(app, steps)
