"""Every command, and the app, in front of every engine that is installed: docs/engines.md is what came of it.

`LOCALRUN_WRITE_ENGINES=1` writes the columns of the engines that are here; else they are compared.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from localrun_testing import REPOSITORY
from localrun_testing.app_on_server import changed_and_gone_on_with, two_turns
from localrun_testing.cached_turns import ten_turns
from localrun_testing.cli import Ran, localrun
from localrun_testing.real_engines import ENGINES, RealEngine, running

import localrun as library
from localrun.base.errors import EngineDiedError
from localrun.base.events import Token
from localrun.base.request import Request, Sampling
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("peer server")]
PAGE = REPOSITORY / "docs" / "engines.md"
HEAD = """# Commands and the app in front of engines

Made by `tests/clients/test_engines.py`, which starts each engine with a tiny model and tries every command and the app:
"yes" it works; "said" the engine does not do it, and localrun says so; "refused" localrun says so before it asks;
"passed on" the engine took it without a word; "not told" the engine does not tell. An empty column was not tried yet.

"""
SCHEMA = (
    '{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}'
)
WRITES = bool(os.environ.get("LOCALRUN_WRITE_ENGINES"))
LONG = "The river is wide, and the night is long. " * 40
Ask = Callable[..., Ran]


def host_show(engine: RealEngine, ask: Ask) -> str:
    shown = ask("host", "show", engine.url, "--json").json
    return "yes" if shown["engine"] == engine.name else "not told"


def load(engine: RealEngine, ask: Ask) -> str:
    return "yes" if ask("host", "show", engine.url, "--json").json["load"] else "not told"


def run(engine: RealEngine, ask: Ask) -> str:
    return _yes(ask("run", "--max-tokens", "16", "Hello"))


def counts(engine: RealEngine, ask: Ask) -> str:
    told = ask("run", "--max-tokens", "8", "--json", "Hello").json
    return "yes" if told["prompt_tokens"] and told["completion_tokens"] else "not told"


def counts_ahead(engine: RealEngine, ask: Ask) -> str:
    """What /sees counts is what the engine read."""
    seen = ask("chat", stdin="/system Be brief.\n/sees\n/quit\n")
    return "yes" if "tokens)" in seen.err else "not told" if "does not say what its model sees" in seen.err else "no"


def cached(engine: RealEngine, ask: Ask) -> str:
    first, second = (ask("run", "--max-tokens", "4", "--json", LONG).json["cached_tokens"] for _ in range(2))
    return "not told" if second is None else "yes" if second > (first or 0) or second > 100 else "no"


def cached_turns(engine: RealEngine, ask: Ask) -> str:
    """Of all ten turns, and of those after an edit too, some of the prompt was cached."""
    with TemporaryDirectory() as folder:
        turns = ten_turns(engine.url, engine.model, Path(folder))
    if any(turn.told is None or turn.counted is None for turn in turns):
        return "not told"
    is_whole = all(turn.told == turn.counted for turn in turns) and sum(bool(turn.told) for turn in turns) >= 7
    return "yes" if is_whole else f"{turns}"


def chat(engine: RealEngine, ask: Ask) -> str:
    return _yes(ask("chat", "--max-tokens", "8", stdin="Hello\nAnd then?\n/quit\n"))


def schema(engine: RealEngine, ask: Ask) -> str:
    told = ask("run", "--max-tokens", "64", "--temperature", "0", "--json", "--schema", SCHEMA, "Is it?").json
    try:
        return "yes" if isinstance(json.loads(told["text"])["a"], bool) else "no"
    except (ValueError, KeyError, TypeError):
        is_said = told["stop_reason"] == "length" or any("did not hold" in note for note in told["notes"])
        return "said" if is_said else "no"


def logprobs(engine: RealEngine, ask: Ask) -> str:
    """Probabilities are at most 1, and an alternative with each."""
    told = ask("run", "--max-tokens", "6", "--temperature", "0", "--json", "--logprobs", "2", "Hello").json
    if not told["logprobs"]:
        return "said" if any("gave no logprobs" in note for note in told["notes"]) else "no"
    is_whole = all(one["logprob"] is not None and one["logprob"] <= 1e-3 and one["top"] for one in told["logprobs"])
    return "yes" if is_whole and len(told["logprobs"]) >= told["completion_tokens"] else "no"


def tools(engine: RealEngine, ask: Ask) -> str:
    """The tiny models have no template for tools."""
    told = ask("run", "--max-tokens", "8", "--tools", "time", "Hello")
    if told.code == 2 and "cannot call tools" in told.err:
        return "refused"
    return "said" if told.code else "passed on"


def python(engine: RealEngine, ask: Ask) -> str:
    with library.LLM(engine.model, server=engine.url) as llm:
        return "yes" if llm.generate("Hello", max_tokens=8).completion_tokens else "no"


def bench(engine: RealEngine, ask: Ask) -> str:
    done = ask("bench", "-p", "64", "-n", "16", "-r", "1", "-b", "1", "-b", "2", "--json")
    # llama_cpp.server drops the first of two
    few = "wrote too little to be measured", "ended its answer before it began"
    return "said" if any(words in done.err for words in few) else _yes(done)


def explain(engine: RealEngine, ask: Ask) -> str:
    return _yes(ask("explain", "reuse", "--json"))


def app_talks(engine: RealEngine, ask: Ask) -> str:
    return two_turns(Endpoint("engine", engine.url, model=engine.model))


def app_goes_on(engine: RealEngine, ask: Ask) -> str:
    return changed_and_gone_on_with(Endpoint("engine", engine.url, model=engine.model))


def killed(engine: RealEngine, ask: Ask) -> str:
    """What had come is there before the error is."""
    client = RemoteClient(Endpoint("engine", engine.url, model=engine.model))
    request = Request(({"role": "user", "content": LONG},), sampling=Sampling(temperature=1.0), max_tokens=400)
    came: list[str] = []
    try:
        for event in client.generate(request):
            if isinstance(event, Token):
                if not came:
                    engine.kill()
                came.append(event.text)
    except EngineDiedError:
        return "yes" if came else "no"
    return "no"


ROWS: dict[str, Callable[[RealEngine, Ask], str]] = {
    "`host show` names it": host_show,
    "`run`": run,
    "tokens counted": counts,
    "tokens counted before they are sent": counts_ahead,
    "cached tokens": cached,
    "cached tokens of ten turns with edits, as its own metrics count them": cached_turns,
    "`chat`, two turns": chat,
    "`run --schema`": schema,
    "`run --logprobs`": logprobs,
    "`run --tools`, of a model that knows none": tools,
    "`LLM(server=…)`": python,
    "`bench`": bench,
    "`explain reuse`": explain,
    "its load, by its metrics": load,
    "the app, two turns": app_talks,
    "the app, an answer that is changed and gone on with": app_goes_on,
    "killed within an answer: what came is kept": killed,  # the last row
}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    with running(request.param, tmp_path_factory.mktemp("engine")) as found:
        if found is None:
            pytest.skip(f"{request.param} is not installed: tests/support/localrun_testing/real_engines.py says where")
        yield found


def test_every_command_in_front_of_it(engine: RealEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALRUN_HOME", str(tmp_path / "of the app"))

    def ask(command: str, *arguments: str, stdin: str = "") -> Ran:
        where = () if command == "host" else ("--server", engine.url, "-m", engine.model)
        done = localrun(command, *arguments, *where, stdin=stdin, LOCALRUN_HOME=str(tmp_path / "home"))
        assert "Traceback" not in done.err, done.err
        return done

    found = {row: cell(engine, ask) for row, cell in ROWS.items()}
    assert not set(found.values()) - {"yes", "said", "refused", "passed on", "not told"}, found
    if WRITES:
        write({**read(), engine.name: found})
    assert read()[engine.name] == found


def read() -> dict[str, dict[str, str]]:
    """The columns of the page."""
    lines = PAGE.read_text("utf-8").splitlines() if PAGE.exists() else []
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    rows = table[2:]
    return {
        name: {row[0]: row[number] for row in rows} for number, name in enumerate(table[0] if table else []) if number
    }


def write(columns: dict[str, dict[str, str]]) -> None:
    rows = [("", *ENGINES), ("---", *["---"] * len(ENGINES))]
    rows += [(row, *(columns.get(name, {}).get(row, "") for name in ENGINES)) for row in ROWS]
    PAGE.write_text(HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows), "utf-8")


def _yes(done: Ran) -> str:
    return "yes" if done.code == 0 and done.out.strip() else f"exit code {done.code}: {' '.join(done.err.split())}"
