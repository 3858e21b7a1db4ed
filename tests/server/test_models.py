"""Which model answers: shared, changed for another, unloaded when nobody asks."""

import asyncio
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.served import serving
from localrun_testing.waiting import PATIENCE

from localrun.base.adapter_choice import AdapterChoice
from localrun.base.errors import DoesNotFitError
from localrun.base.request import LoadOptions, ProgressCallback
from localrun.base.resources import resource
from localrun.client.choice import ModelChoice, builtin
from localrun.client.model_slot import LoadGivenUpError, ModelSlot, OpenClient
from localrun.hub.disk.stored import StoredModel
from localrun.server import models
from localrun.server.models import ModelHost
from localrun.server.options import ServerOptions, read_aliases, seconds
from localrun.server.refusal import Refusal


def stored(name: str) -> StoredModel:
    return StoredModel(name, "Q8_0", Path(f"/{name}.gguf"), 1, "gguf", "models")


USUAL = ServerOptions()
CHOICES = {name: ModelChoice(stored(name), "Q8_0") for name in ("one", "two", "huge")}


@dataclass
class Host:
    """A host whose models are fakes; `loaded` names them in the order of their loads."""

    models: ModelHost
    loaded: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)

    async def use(self, name: str, until: asyncio.Event, keep_alive: float | None = None) -> None:
        async with self.models.use(name, keep_alive):
            self.used.append(name)
            await until.wait()

    def begin(self, name: str, until: asyncio.Event) -> "asyncio.Task[None]":
        return asyncio.ensure_future(self.use(name, until))


@asynccontextmanager
async def hosting(options: ServerOptions = ServerOptions()) -> AsyncIterator[Host]:  # noqa: B008
    loaded: list[str] = []

    def open_client(choice: ModelChoice, progress: ProgressCallback) -> FakeClient:
        assert isinstance(choice.stored, StoredModel)
        if choice.stored.name == "huge":
            raise DoesNotFitError("it takes 90 GiB of 24", "take a smaller one")
        loaded.append(choice.stored.name)
        return FakeClient(LoadOptions(Path()), lambda request: "")

    host = ModelHost(ModelSlot(open_client), CHOICES["one"], options)
    host.find = lambda name: CHOICES[name or "one"]  # type: ignore[method-assign]
    try:
        yield Host(host, loaded)
    finally:
        await host.close()


def checking_host(open_client: OpenClient, check: Callable[[ModelChoice, int], None]) -> Host:
    """A host that checks a model before it frees the loaded one."""
    host = Host(ModelHost(ModelSlot(open_client), CHOICES["one"], USUAL, check))
    host.models.find = lambda name: CHOICES[name]  # type: ignore[method-assign]
    return host


def test_requests_for_the_loaded_model_do_not_look_at_the_disk() -> None:
    async def scenario() -> None:
        async with hosting(ServerOptions(aliases={"gpt": "one"})) as host:
            host.models.find = lambda name: pytest.fail(f"{name} was looked for")  # type: ignore[method-assign]
            for name in ("", "one", "ONE:latest", "one:q8_0", "gpt"):
                async with host.models.use(name):
                    assert host.loaded == ["one"]

    asyncio.run(scenario())


async def reached(found: Callable[[], object]) -> None:
    """Wait for what takes a thread: a load, or a look for a model."""
    give_up = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < give_up
        await asyncio.sleep(0.001)


async def settle() -> None:
    """Let go on what should not: it takes less."""
    for _ in range(20):
        await asyncio.sleep(0.005)


def test_requests_for_one_model_share_it_and_another_waits() -> None:
    async def story() -> None:
        async with hosting() as host:
            end, other_end = asyncio.Event(), asyncio.Event()
            first = [host.begin("one", end) for _ in range(3)]
            other = host.begin("two", other_end)
            await reached(lambda: len(host.used) == 3 and host.models._waiting)
            await settle()
            assert (host.used, host.loaded) == (["one"] * 3, ["one"])
            late = host.begin("one", end)  # goes on with the loaded model
            await reached(lambda: host.used == ["one"] * 4)
            end.set()
            await asyncio.gather(*first, late)
            await reached(lambda: host.loaded == ["one", "two"])
            other_end.set()
            await other

    asyncio.run(story())


def test_after_its_patience_another_model_goes_before_what_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "PATIENCE_SECONDS", 0.0)

    async def story() -> None:
        async with hosting() as host:
            end, both = asyncio.Event(), asyncio.Event()
            first = host.begin("one", end)
            await reached(lambda: host.used)
            rest = [host.begin("two", both)]
            await reached(lambda: host.models._waiting)
            rest.append(host.begin("one", both))
            await settle()
            assert host.used == ["one"]
            both.set()
            end.set()
            await asyncio.gather(first, *rest)
            assert (host.used, host.loaded) == (["one", "two", "one"], ["one", "two", "one"])

    asyncio.run(story())


def test_the_first_model_comes_back_with_its_adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "resolve_listed", stored)
    adapted = replace(CHOICES["one"], adapters=(AdapterChoice(Path("/a.gguf"), 0.5),))
    slot = ModelSlot(lambda choice, progress: FakeClient(LoadOptions(Path()), lambda request: ""))
    host = ModelHost(slot, adapted, ServerOptions())

    async def story() -> None:
        for name in ("one", "two", "one"):
            async with host.use(name):
                assert slot.choice == (adapted if name == "one" else CHOICES[name])
        await host.close()

    asyncio.run(story())


def test_a_swap_that_fails_leaves_the_model_that_was_there() -> None:
    async def story() -> None:
        async with hosting() as host:
            done = asyncio.Event()
            done.set()
            await host.use("one", done)
            with pytest.raises(DoesNotFitError, match="90 GiB"):
                await host.use("huge", done)
            assert host.models.slot.info
            assert host.models.choice == CHOICES["one"]
            await host.use("", done)
            assert host.used == ["one", ""]

    asyncio.run(story())


def test_a_model_that_cannot_be_loaded_leaves_the_other_where_it_is() -> None:
    """With its cache: loaded again it would have to read every chat anew."""

    async def story() -> None:
        def check(choice: ModelChoice, freed: int) -> None:
            if choice == CHOICES["huge"]:
                raise DoesNotFitError("it takes 90 GiB of 24", "take a smaller one")

        opened: list[FakeClient] = []

        def open_client(choice: ModelChoice, progress: ProgressCallback) -> FakeClient:
            opened.append(FakeClient(LoadOptions(Path()), lambda request: ""))
            return opened[-1]

        host = checking_host(open_client, check)
        done = asyncio.Event()
        done.set()
        await host.use("one", done)
        with pytest.raises(DoesNotFitError, match="90 GiB"):
            await host.use("huge", done)
        assert (host.models.slot.client, host.models.choice) == (opened[0], CHOICES["one"])
        assert not opened[0].closed
        await reached(lambda: host.models.unload_at is not None)
        await host.use("one", done)
        await host.use("two", done)
        assert [one.closed for one in opened] == [True, False]
        await host.models.close()

    asyncio.run(story())


def test_a_load_that_was_left_gives_way_to_the_next_also_while_its_file_is_checked() -> None:
    async def story() -> None:
        may_check, done = threading.Event(), asyncio.Event()
        checked: list[ModelChoice] = []
        done.set()

        def check(choice: ModelChoice, freed: int) -> None:
            checked.append(choice)
            if choice == CHOICES["two"]:
                may_check.wait(PATIENCE)

        loaded: list[ModelChoice] = []

        def open_client(choice: ModelChoice, progress: ProgressCallback) -> FakeClient:
            loaded.append(choice)
            return FakeClient(LoadOptions(Path()), lambda request: "")

        host = checking_host(open_client, check)
        await host.use("one", done)
        left = host.begin("two", done)
        await reached(lambda: checked)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        next_one = host.begin("huge", done)
        await reached(lambda: len(checked) == 2)
        may_check.set()
        await asyncio.wait_for(next_one, PATIENCE)
        await settle()
        assert loaded == [CHOICES["one"], CHOICES["huge"]]
        await host.models.close()

    asyncio.run(story())


def test_a_load_that_was_left_while_its_file_is_checked_ends_no_answer_of_the_other() -> None:
    async def story() -> None:
        may_check, done, end = threading.Event(), asyncio.Event(), asyncio.Event()
        checked, opened = list[ModelChoice](), list[FakeClient]()
        done.set()

        def check(choice: ModelChoice, freed: int) -> None:
            checked.append(choice)
            may_check.wait(PATIENCE)

        def open_client(choice: ModelChoice, progress: ProgressCallback) -> FakeClient:
            opened.append(FakeClient(LoadOptions(Path()), lambda request: ""))
            return opened[-1]

        host = checking_host(open_client, check)
        await host.use("one", done)
        left = host.begin("two", done)
        await reached(lambda: checked)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        answer = host.begin("one", end)
        await reached(lambda: host.used == ["one", "one"])
        may_check.set()
        await reached(lambda: host.models._loading is None)
        assert (host.models.slot.client, host.models.choice, opened[0].closed) == (opened[0], CHOICES["one"], False)
        end.set()
        await answer
        await host.use("two", done)
        assert [one.closed for one in opened] == [True, False]
        await host.models.close()

    asyncio.run(story())


def test_who_leaves_while_waiting_holds_nothing_up() -> None:
    async def story() -> None:
        async with hosting() as host:
            end = asyncio.Event()
            first = host.begin("one", end)
            await reached(lambda: host.used)
            impatient = host.begin("two", end)
            await reached(lambda: host.models._waiting)
            impatient.cancel()
            end.set()
            await asyncio.gather(first, impatient, return_exceptions=True)
            await host.use("one", end)
            assert host.loaded == ["one"]

    asyncio.run(story())


def test_a_load_goes_on_though_its_client_leaves() -> None:
    """One with less patience than a load takes would otherwise begin it anew each time, and push out who else waits."""

    async def story() -> None:
        may_load, done = threading.Event(), asyncio.Event()
        opened: list[str] = []
        done.set()

        def open_client(choice: ModelChoice, progress: ProgressCallback) -> FakeClient:
            assert isinstance(choice.stored, StoredModel)
            opened.append(choice.stored.name)
            may_load.wait(PATIENCE)
            return FakeClient(LoadOptions(Path()), lambda request: "")

        host = Host(ModelHost(ModelSlot(open_client), CHOICES["one"], ServerOptions()))
        host.models.find = lambda name: CHOICES[name]  # type: ignore[method-assign]
        for _ in range(2):
            impatient = host.begin("one", done)
            await reached(lambda: opened)
            impatient.cancel()
            await asyncio.gather(impatient, return_exceptions=True)
        last = host.begin("one", done)
        may_load.set()
        await asyncio.wait_for(last, PATIENCE)
        assert (opened, host.used) == (["one"], ["one"])
        await host.models.close()

    asyncio.run(story())


def test_a_load_that_nobody_waited_for_is_unloaded_in_time() -> None:
    async def story() -> None:
        async with hosting(ServerOptions(keep_alive=0.0)) as host:
            impatient = host.begin("one", asyncio.Event())
            await reached(lambda: host.loaded)
            impatient.cancel()
            await asyncio.gather(impatient, return_exceptions=True)
            await reached(lambda: host.models._loading is None and host.models.slot.client is None)

    asyncio.run(story())


def test_a_load_that_is_cancelled_is_given_up() -> None:
    """Otherwise it would go on beside the next one, and both may not fit."""

    async def story() -> None:
        begun, given_up = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def open_client(choice: ModelChoice, progress: ProgressCallback) -> FakeClient:
            loop.call_soon_threadsafe(begun.set)
            while True:
                try:
                    progress(0, 1)
                    time.sleep(0.001)
                except LoadGivenUpError:
                    loop.call_soon_threadsafe(given_up.set)
                    raise

        load = asyncio.ensure_future(ModelSlot(open_client).load(CHOICES["one"], lambda done, total: None))
        await begun.wait()
        load.cancel()
        await asyncio.wait_for(given_up.wait(), PATIENCE)

    asyncio.run(story())


def test_a_model_that_nobody_asks_for_is_unloaded() -> None:
    async def story() -> None:
        async with hosting() as host:
            done = asyncio.Event()
            done.set()
            await host.use("one", done, keep_alive=0.0)
            await reached(lambda: host.models.slot.client is None)
            await host.use("one", done, keep_alive=None)
            assert host.loaded == ["one", "one"]
            assert host.models.unload_at is not None

    asyncio.run(story())


@pytest.mark.parametrize("path", ["/etc/passwd", "./x.gguf", "../x.gguf", "~/x", "C:\\x.gguf", "a/b/c.gguf", "no-such"])
def test_models_are_named_never_placed(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    host = ModelHost(
        ModelSlot(lambda choice, progress: FakeClient(LoadOptions(Path()), str)), builtin(), ServerOptions()
    )
    with pytest.raises(Refusal) as caught:
        host.find(path)
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")
    assert host.find("builtin:latest").stored == host.find("BUILTIN").stored == builtin().stored


def test_the_loaded_model_answers_to_other_names_only_where_that_was_said() -> None:
    slot = ModelSlot(lambda choice, progress: FakeClient(LoadOptions(Path()), str))
    usual = ServerOptions()
    assert ModelHost(slot, CHOICES["one"], replace(usual, any_model=True)).find("gpt-4") == CHOICES["one"]
    with pytest.raises(Refusal, match="--no-swap"):
        ModelHost(slot, CHOICES["one"], replace(usual, no_swap=True)).find("builtin")


def test_the_loaded_model_is_found_without_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request names it, and to list what is on disk takes milliseconds."""

    def resolve(name: str) -> StoredModel:
        raise AssertionError("the disk was read")

    monkeypatch.setattr(models, "resolve_listed", resolve)
    host = ModelHost(ModelSlot(lambda choice, progress: FakeClient(LoadOptions(Path()), str)), CHOICES["one"], USUAL)
    for name in ("one", "One", "one:latest", "one:q8_0"):
        assert host.find(name) == CHOICES["one"]


def test_models_answer_to_the_names_that_they_were_given() -> None:
    options = ServerOptions(port=0, aliases=read_aliases(["GPT-4o=builtin", "loaded"]))
    slot = ModelSlot(lambda choice, progress: FakeClient(LoadOptions(Path()), str))
    host = ModelHost(slot, CHOICES["one"], options)
    for name in ("gpt-4o", "GPT-4O:latest"):
        assert host.find(name).stored == builtin().stored
    assert host.find("loaded") == CHOICES["one"]
    with pytest.raises(Refusal):
        host.find("gpt-4")
    with serving(lambda choice: FakeClient(LoadOptions(Path()), lambda request: "yes"), options) as served:
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
        answer = httpx.post(f"{served.url}/v1/chat/completions", json=body, timeout=60).json()
        assert (answer["model"], answer["choices"][0]["message"]["content"]) == ("gpt-4o", "yes")
        listed = [row["id"] for row in httpx.get(f"{served.url}/v1/models").json()["data"]]
        assert listed == [row["name"] for row in httpx.get(f"{served.url}/api/tags").json()["models"]]
        assert {"builtin", "gpt-4o", "loaded"} <= set(listed)


def test_the_model_for_requests_without_a_name_is_listed_first(home: Path) -> None:
    """Many clients ask the first of the list, and would have the server load another one."""
    (home / "models").mkdir(parents=True)
    for name in ("a", "z"):
        shutil.copy(resource("localrun/builtin/localrun-tiny.gguf"), home / "models" / f"{name}.gguf")
    host = ModelHost(ModelSlot(lambda choice, progress: FakeClient(LoadOptions(Path()), str)), builtin(), USUAL)
    named = {one.name: ModelChoice(one, one.precision) for one in host.listed()}
    assert len(named) == 3
    for name, choice in named.items():
        host = ModelHost(ModelSlot(lambda choice, progress: FakeClient(LoadOptions(Path()), str)), choice, USUAL)
        assert [one.name for one in host.listed()] == [name, *sorted({*named} - {name})]


@pytest.mark.parametrize("text", ["", "=builtin", "name=", "a\nb"])
def test_aliases_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=MODEL"):
        read_aliases([text])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("90", 90.0),
        (90, 90.0),
        (0, 0.0),
        ("0", 0.0),
        (-1, None),
        ("-1m", None),
        (-(10**400), None),
    ],
)
def test_times_as_clients_write_them(text: object, wanted: float | None) -> None:
    assert seconds(text) == wanted


@pytest.mark.parametrize("text", ["soon", "", "5 m", "m", "1e400", 10**400, "nan", True, None, [1], "5m-3"])
def test_what_is_no_time(text: object) -> None:
    with pytest.raises(ValueError, match="time"):
        seconds(text)
