"""search, fit, pull, show, rm and the consent of run, against a hub on loopback."""

import io
import json
import math
import re
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from types import ModuleType

import pytest
from localrun_testing.fake_client import FakeClient
from localrun_testing.fake_hub import FakeHub, FakeRepo
from localrun_testing.projector_gguf import write_projector
from localrun_testing.schemas import check
from localrun_testing.stub_gguf import stub_gguf, tensors_of
from localrun_testing.tiny_towers import SHAPE, TINY_TOWERS

from localrun.backends.registry import usual_backend
from localrun.base.errors import UsageError
from localrun.base.machine import Memory
from localrun.base.settings import read_settings
from localrun.base.units import gib
from localrun.cli import consent, remove
from localrun.cli.app import run_command_line
from localrun.cli.fit import parse_size
from localrun.fit.disk_rate import may_map
from localrun.fit.rates import Rates
from localrun.formats.gguf import open_gguf
from localrun.hub import catalogue_shape
from localrun.hub.remote import api
from localrun.hub.resolve import resolve
from localrun.hub.verdicts import rough_verdict
from localrun.model.archs.mixtral import Mixtral
from localrun.model.archs.qwen3_moe import Qwen3Moe
from localrun.storage.label import Label, write_label

N_PARAMS = sum(prod(shape) for shape in tensors_of(320, 2).values())
Run = Callable[..., tuple[int, str, str]]


def cannot_run(folder: Path) -> dict[str, dict[str, bytes]]:
    """Repositories of models that this version cannot run, each for a reason of its own."""
    unknown_type = bytearray(stub_gguf(folder, "old-F16.gguf"))
    at = unknown_type.index(b"token_embd.weight") + len("token_embd.weight") + 4 + 2 * 8
    unknown_type[at : at + 4] = (31).to_bytes(4, "little")  # Q4_0_4_4, which there was once
    odd_words = stub_gguf(
        folder, "odd-F16.gguf", more={"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "martian"}
    )
    config = {"architectures": ["MambaForCausalLM"], "model_type": "mamba", "hidden_size": 64}
    return {
        "org/moe-GGUF": {
            "moe-F16.gguf": stub_gguf(folder, "moe-F16.gguf", arch="gemma3", more={"gemma3.expert_count": 8})
        },
        "org/mamba-GGUF": {"mamba-F16.gguf": stub_gguf(folder, "mamba-F16.gguf", arch="mamba")},
        "org/old-GGUF": {"old-F16.gguf": bytes(unknown_type)},
        "org/odd-GGUF": {"odd-F16.gguf": odd_words},
        "org/Some-Qwen-7B-GGUF": {"some-Q4_0_4_4.gguf": bytes(unknown_type)},
        "org/Other-Qwen-7B-GGUF": {
            "other-Q4_0_4_4.gguf": bytes(unknown_type),
            "other-F16.gguf": stub_gguf(folder, "other-F16.gguf"),
        },
        "org/broken-GGUF": {"broken-F16.gguf": b"<html>" + bytes(8000)},
        "org/mamba": {"config.json": json.dumps(config).encode(), "model.safetensors": empty_safetensors()},
        "unsloth/gemma-3n-E4B-it-GGUF": {"q-Q4_K_M.gguf": stub_gguf(folder, "q-Q4_K_M.gguf", arch="gemma3n")},
    }


def empty_safetensors() -> bytes:
    header = json.dumps({"a": {"dtype": "F32", "shape": [1024], "data_offsets": [0, 4096]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4096)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    files = {name: stub_gguf(tmp_path, name) for name in ("tiny-F16.gguf", "tiny-F32.gguf")}
    repos = {
        "org/tiny-GGUF": FakeRepo({**files, "README.md": b"hi"}, gguf={"architecture": "qwen3", "total": 20_000_000}),
        "Qwen/Qwen3-0.6B-GGUF": FakeRepo({"Qwen3-0.6B-Q8_0.gguf": files["tiny-F16.gguf"]}),
        "org/locked-GGUF": FakeRepo(files, gated=True),
        **{repo: FakeRepo(files) for repo, files in cannot_run(tmp_path).items()},
    }
    monkeypatch.setattr(api, "RETRY_SECONDS", ())
    with FakeHub(repos) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        yield running


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    module = ModuleType("localrun.client.local")
    module.LocalClient = lambda options, progress: FakeClient(options, lambda request: "Yes.")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "localrun.client.local", module)
    for name in ("localrun.cli.fit", "localrun.hub.fits"):
        monkeypatch.setattr(f"{name}.machine_rates", lambda backend=None: Rates(40e9, 1e12))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run_command_line(list(arguments))
        return code, *capsys.readouterr()

    return call


def terminal(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """A person at the terminal who types these lines."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    for module in (consent, remove):
        monkeypatch.setattr(module, "can_ask", lambda: True)


def test_search_shows_the_catalogue_first_and_then_the_hub(hub: FakeHub, run: Run) -> None:
    code, out, err = run("search", "0.6b", "--json")
    rows = json.loads(out)
    check(rows, "search")
    assert (code, [row["name"] for row in rows]) == (0, ["qwen3-0.6b"])
    assert [row["source"] for row in json.loads(run("search", "org/tiny-gguf", "--json")[1])] == ["hub"]
    code, out, err = run("search", "org/tiny-gguf")
    assert out.splitlines()[1].split()[:3] == ["org/tiny-GGUF", "20.0", "M"]
    assert "localrun fit" in err
    assert run("search", "no such thing")[::2] == (0, "nothing found: try fewer words\n")


def test_search_without_a_network(hub: FakeHub, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run("search", "qwen3", "--offline")
    assert code == 0
    assert "qwen3-4b" in out
    assert err.splitlines()[0].startswith("offline: this is the catalogue")
    hub.break_file("api", "rate-limit")
    code, out, err = run("search", "qwen3")
    assert (code, "qwen3-4b" in out, "too many requests" in err) == (0, True, True)
    assert run("search", "org/tiny-gguf")[0] == 7
    assert not [seen for seen in hub.seen if seen.server == "store"]


@pytest.mark.parametrize(
    ("typed", "meant", "is_one"),
    [
        ("mistral:7b", "mistral-7b", True),
        ("llama3.2", "llama-3.2-1b", False),
        ("llama3.2:latest", "llama-3.2-1b", False),
        ("qwen3-4", "qwen3-4b", False),
        ("gemma3", "gemma-3-1b", False),
        ("qwen3:4b-instruct", "qwen3-4b", False),
    ],
)
@pytest.mark.parametrize("command", ["run -m {} hi", "chat -m {}", "show {}", "pull {}", "fit {}"])
def test_names_of_other_programs_lead_to_the_catalogue(
    hub: FakeHub, run: Run, home: Path, command: str, typed: str, meant: str, is_one: bool
) -> None:
    code, out, err = run(*command.format(typed).split(), "--offline")
    is_known = is_one and command in ("show {}", "fit {}")
    assert code == (0 if is_known else 7 if is_one and command == "pull {}" else 3), err
    assert meant in out + err or (is_one and code in (0, 7))
    assert hub.seen == []

    name = typed.replace(":", "-").removesuffix("-latest")
    (home / "models").mkdir(parents=True)
    (home / "models" / f"{name}-F16.gguf").write_bytes(hub.repos["org/tiny-GGUF"].files["tiny-F16.gguf"])
    if command != "pull {}":
        assert json.loads(run("show", typed, "--offline", "--json")[1])["name"] == name
        assert "there is no model" not in "".join(run(*command.format(typed).split(), "--offline")[1:])


def test_fit_before_a_download(hub: FakeHub, run: Run) -> None:
    code, out, _ = run("fit", "org/tiny-GGUF", "--json", "--parallel", "2")
    answer = json.loads(out)
    check(answer, "fit")
    assert code == 0
    assert {row["precision"] for row in answer["rows"]} == {"F16", "F32"}
    assert {row["ctx"] for row in answer["rows"]} == {4096, 8192}
    assert sum(row["recommended"] for row in answer["rows"]) == 1
    assert max(hub.sent(name) for name in hub.repos["org/tiny-GGUF"].files) <= 64 << 10

    code, out, _ = run("fit", "org/tiny-GGUF:F32", "--ctx", "4096", "--memory", "1MiB", "--json", "--check")
    answer = json.loads(out)
    assert (code, answer["machine"]["budget_bytes"], answer["machine"]["what_if"]) == (4, 1 << 20, True)
    assert {(row["precision"], row["ctx"], row["verdict"]) for row in answer["rows"]} == {("F32", 4096, "no")}
    assert run("fit", "org/tiny-GGUF", "--memory", "64GiB", "--check")[0] == 0
    code, out, _ = run("fit", "org/tiny-GGUF")
    assert "Recommended: F16 with a context of 8,192" in out


def test_fit_offline_and_of_what_is_on_disk(hub: FakeHub, run: Run) -> None:
    code, out, err = run("fit", "qwen3-8b", "--offline", "--memory", "16GiB", "--json")
    rows = json.loads(out)["rows"]
    assert code == 0
    assert all(row["approximate"] for row in rows)
    assert next(row for row in rows if row["recommended"])["precision"] == "Q4_K_M"
    assert "≈" in err
    assert hub.seen == []
    code, out, _ = run("fit", "org/tiny-GGUF", "--offline")
    assert code == 7
    assert run("fit", "no-such-model")[0] == 3
    code, out, _ = run("fit", "qwen3-8b", "--offline", "--memory", "16GiB", "--ctx", "40960")
    assert code == 0
    assert {line.split()[1] for line in out.splitlines() if line.startswith("Q4_K_M")} == {"f16", "q8", "k8v4", "q4"}
    code, _, err = run("fit", "qwen3-8b", "--offline", "--ctx", "40961")
    assert code == 2
    assert "try --ctx 40960" in err
    assert run("pull", "org/tiny-GGUF:F32")[0] == 0
    rows = json.loads(run("fit", "org/tiny-GGUF", "--offline", "--json")[1])["rows"]
    assert {(row["precision"], row["weights_bytes"]) for row in rows} == {("F32", 4 * N_PARAMS)}


def test_what_fits_nowhere_has_no_speed(hub: FakeHub, run: Run) -> None:
    def speeds(memory: str) -> set[str]:
        _, out, _ = run("fit", "qwen3-8b", "--offline", "--memory", memory)
        return {line.split("  ")[-1] for line in out.splitlines() if line.startswith(("Q4_K_M", "Q8_0"))}

    assert speeds("1500MiB") == {"-"}
    assert all(speed.endswith("tok/s") for speed in speeds("16GiB"))


@pytest.mark.parametrize(
    ("text", "size"), [("64GiB", 64 << 30), ("64g", 64 << 30), ("1.5 TB", 3 << 39), ("1000", 1000), ("8MiB", 8 << 20)]
)
def test_memory_sizes_are_parsed(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1G", "0", "1e9G", "9" * 30, "G"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size(text)


def test_pull_chooses_checks_and_makes_the_first_model_the_default(hub: FakeHub, run: Run, home: Path) -> None:
    code, out, err = run("pull", "org/tiny-GGUF", "--json")
    answer = json.loads(out)
    check(answer, "pull")
    assert code == 0
    assert (answer["precision"], answer["default"], answer["name"]) == ("F16", True, "org/tiny-GGUF")
    assert Path(answer["path"]).read_bytes() == hub.repos["org/tiny-GGUF"].files["tiny-F16.gguf"]
    assert answer["fetched"] == answer["bytes"] > 0
    assert "is now the default model" in err
    assert "downloaded and checked" in err
    assert json.loads(run("config", "model", "--json")[1]) == {"model": "org/tiny-GGUF"}

    code, out, err = run("pull", "qwen3-0.6b", "--json")
    answer = json.loads(out)
    assert (answer["default"], answer["repo"], answer["precision"]) == (False, "Qwen/Qwen3-0.6B-GGUF", "Q8_0")
    assert "default" not in err
    assert json.loads(run("pull", "org/tiny-GGUF:F16", "--json")[1])["fetched"] == 0
    assert run("show", "qwen3-0.6b", "--json")[0] == 0
    assert run("run", "-m", "qwen3-0.6b", "--no-stdin", "hello")[:2] == (0, "Yes.\n")


def test_pull_takes_the_projector_that_is_read_with_a_model_that_sees(hub: FakeHub, run: Run, tmp_path: Path) -> None:
    repo = hub.repos["org/tiny-GGUF"]
    assert run("pull", "org/tiny-GGUF:F16", "--images")[0] == 3
    assert "--images" not in run("pull", "org/tiny-GGUF:F16")[2]
    path = write_projector(tmp_path / "mmproj.gguf", TINY_TOWERS["qwen3.5"].build().state_dict(), SHAPE)
    repo.files["mmproj-F32.gguf"] = path.read_bytes()  # of a model with other rows
    assert run("pull", "org/tiny-GGUF:F16", "--images")[0] == 3
    recipe = replace(TINY_TOWERS["qwen3.5"], more={"out_hidden_size": 64})
    path = write_projector(tmp_path / "mmproj.gguf", recipe.build().state_dict(), {**SHAPE, "out_hidden_size": 64})
    repo.files["mmproj-F32.gguf"] = path.read_bytes()
    repo.files["mmproj-F16.gguf"] = stub_gguf(tmp_path, "mmproj-F16.gguf", arch="clip")  # of another kind
    assert "`localrun pull org/tiny-GGUF:F16 --images`" in run("pull", "org/tiny-GGUF:F16")[2]
    code, out, err = run("pull", "org/tiny-GGUF:F16", "--images", "--json")
    assert code == 0, err
    answer = json.loads(out)
    check(answer, "pull")
    assert (Path(answer["path"]).parent / "mmproj-F32.gguf").read_bytes() == path.read_bytes()
    assert answer["fetched"] == len(path.read_bytes())


def test_what_images_cost_is_known_before_a_download_and_after_it(hub: FakeHub, run: Run, tmp_path: Path) -> None:
    """Tokens and memory, with the projector counted; plans without room for them say so."""
    recipe = replace(TINY_TOWERS["qwen3.5"], more={"out_hidden_size": 64})
    path = write_projector(tmp_path / "mmproj.gguf", recipe.build().state_dict(), {**SHAPE, "out_hidden_size": 64})
    tiny = stub_gguf(tmp_path, "seeing-F16.gguf", arch="qwen3vl")
    files = {"seeing-F16.gguf": tiny, "mmproj-F32.gguf": path.read_bytes()}
    hub.repos["org/seeing-GGUF"] = FakeRepo(files, gguf={"architecture": "qwen35", "total": 20_000_000})
    before = json.loads(run("show", "org/seeing-GGUF", "--json")[1])["images"]
    assert before["tokens"] == {"512x512": 1024, "1280x720": 1008, "1920x1080": 1008, "4032x3024": 972}
    assert (before["projector"], before["projector_bytes"]) == ("mmproj-F32.gguf", path.stat().st_size)
    assert before["room_bytes"] > before["tower_bytes"] > 0
    code, out, _ = run("fit", "org/seeing-GGUF", "--json", "--memory", "8GiB")
    table = json.loads(out)
    check(table, "fit")
    assert (code, table["images"]) == (0, before)
    assert all(row["images_fit"] for row in table["rows"])
    assert "there is room" in run("fit", "org/seeing-GGUF", "--memory", "8GiB")[1]
    found = json.loads(run("search", "seeing", "--json")[1])
    assert [row["sees"] for row in found if row["repo"] == "org/seeing-GGUF"] == [True]
    assert not any(row["sees"] for row in json.loads(run("search", "tiny", "--json")[1]) if row["source"] == "hub")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["org/tiny-GGUF:Q4_K_M"], 3, "did you mean|there is F16, F32"),
        (["org/none"], 3, "the hub has no org/none"),
        (["qwen3-5b"], 3, "did you mean qwen3"),
        (["org/locked-GGUF"], 7, "gated"),
        (["org/tiny-GGUF", "--offline"], 7, "offline"),
        (["../../etc/passwd"], 3, "there is no model"),
        ([], 2, "MODEL"),
    ],
)
def test_pull_errors(hub: FakeHub, run: Run, arguments: list[str], code: int, says: str) -> None:
    found, out, err = run("pull", *arguments, "--json")
    assert found == code
    check(json.loads(out), "error")
    assert any(text in err for text in says.split("|"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("org/moe-GGUF", "mixtures of experts"),
        ("org/mamba-GGUF", "architecture 'mamba'"),
        ("org/old-GGUF", "unknown type 31"),
        ("org/Some-Qwen-7B-GGUF", "unknown type 31"),
        ("org/Other-Qwen-7B-GGUF:Q4_0_4_4", "unknown type 31"),
        ("org/odd-GGUF", "pre-tokenizer 'martian'"),
        ("org/broken-GGUF", "not a GGUF file"),
        ("org/mamba", "architecture 'MambaForCausalLM'"),
        ("unsloth/gemma-3n-E4B-it-GGUF", "architecture 'gemma3n'"),
    ],
)
@pytest.mark.parametrize("how", ["pull", "run", "asked"])
def test_unsupported_models_are_not_downloaded(
    hub: FakeHub, run: Run, monkeypatch: pytest.MonkeyPatch, home: Path, name: str, why: str, how: str
) -> None:
    if how == "asked":
        terminal(monkeypatch, "y")
    command = ["pull", name] if how == "pull" else ["run", "--no-stdin", "-m", name, "hello"]
    code, out, err = run(*command, *(["--pull"] if how == "run" else []))
    assert (code, out) == (6, "")
    assert "nothing was downloaded" in err
    assert why in err
    assert "the nearest that runs is " in err or name == "org/broken-GGUF"
    assert read_settings().model is None
    assert [row["source"] for row in json.loads(run("list", "--json")[1])] == ["builtin"]
    assert not list(home.rglob("*.localrun-part"))


def test_unsupported_models_are_marked_everywhere(
    hub: FakeHub, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arch in (Qwen3Moe, Mixtral):  # every model of the catalogue can be run
        monkeypatch.setattr(arch, "experts", None)
    monkeypatch.setattr(catalogue_shape, "_shape", cache(catalogue_shape._shape.__wrapped__))  # kept by other tests
    _, out, err = run("fit", "qwen3-30b-a3b", "--offline")
    assert "this version cannot run it: mixtures of experts" in err
    assert "None is recommended: mixtures of experts" in out
    assert run("fit", "qwen3-30b-a3b", "--offline", "--check", "--memory", "1TB")[0] == 4
    for name in ("qwen3-30b-a3b", "mixtral-8x7b"):
        _, out, err = run("show", name, "--offline", "--json")
        answer = json.loads(out)
        check(answer, "show")
        assert "mixtures of experts" in answer["obstacle"]
        assert "this version cannot run it" in err
        row = next(row for row in json.loads(run("search", name, "--offline", "--json")[1]) if row["name"] == name)
        assert "mixtures of experts" in row["obstacle"]
    hub.repos["org/mamba-GGUF"].gguf = {"architecture": "mamba", "total": 1_000_000}
    assert "cannot be run: architecture 'mamba'" in run("search", "mamba")[1]
    assert json.loads(run("show", "qwen3-4b", "--offline", "--json")[1])["obstacle"] is None
    (home / "models").mkdir(parents=True, exist_ok=True)
    for name in ("org/moe-GGUF", "org/odd-GGUF"):
        for file, content in hub.repos[name].files.items():
            (home / "models" / file).write_bytes(content)
    _, out, err = run("list")
    assert "moe F16 cannot be run: mixtures of experts" in err
    assert "odd F16 cannot be run: the tokenizer splits" in err
    assert len(set(re.findall(r" [\d.<]+ (GiB|MiB|KiB|bytes?) ", out))) == 1, "sizes of one column have one unit"
    rows = json.loads(run("list", "--json")[1])
    check(rows, "list")
    assert [bool(row["obstacle"]) for row in rows] == [row["name"] != "builtin" for row in rows]
    assert "mixtures of experts" in json.loads(run("show", "moe", "--json")[1])["obstacle"]
    assert run("config", "model", "moe")[0] == 2
    assert read_settings().model is None


@pytest.mark.parametrize(
    ("name", "missing", "nearest"),
    [
        ("org/Mamba-7B-GGUF", "architecture 'mamba'", "smollm2-360m"),
        ("org/Some-Qwen-7B-GGUF", "the unknown type 31", "qwen"),
        ("org/Other-Qwen-7B-GGUF:Q4_0_4_4", "the unknown type 31", "qwen"),
    ],
)
def test_show_and_fit_say_what_is_missing_and_what_runs(
    hub: FakeHub, run: Run, tmp_path: Path, name: str, missing: str, nearest: str
) -> None:
    """An architecture that we do not have, and a type of weights: before a byte of either is downloaded."""
    hub.repos["org/Mamba-7B-GGUF"] = FakeRepo(
        {"m-F16.gguf": stub_gguf(tmp_path, "m-F16.gguf", arch="mamba")}, gguf={"architecture": "mamba", "total": 1}
    )
    for command in ("show", "fit"):
        code, out, err = run(command, name, "--json")
        assert (code, err.count("cannot run it")) == (0, 1)
        told = err[err.index("this version cannot run it: ") :]
        assert missing in told
        assert nearest in told.partition("the nearest that runs is ")[2]
        check(json.loads(out), command)
    assert not any(row["recommended"] for row in json.loads(out)["rows"])
    assert missing in json.loads(out)["reason"]
    assert run("fit", name, "--check")[0] == 4
    rows = json.loads(run("search", "mamba-7b", "--json")[1])
    check(rows, "search")
    (row,) = rows
    assert ("mamba" in row["obstacle"], bool(row["instead"]), row["verdict"]) == (True, True, None)
    assert "the nearest that runs is" in run("search", "mamba-7b")[1]


def test_a_precision_that_cannot_be_read_is_not_recommended(hub: FakeHub, run: Run) -> None:
    for command in ("show", "fit"):
        code, out, err = run(command, "org/Other-Qwen-7B-GGUF", "--json")
        assert (code, "Q4_0_4_4 cannot be read: the tensor" in err) == (0, True)
        assert "cannot run it" not in err
    assert {row["precision"] for row in json.loads(out)["rows"]} == {"F16"}
    assert json.loads(run("pull", "org/Other-Qwen-7B-GGUF", "--json")[1])["precision"] == "F16"


def test_every_command_says_the_same_of_what_runs_from_disk(
    hub: FakeHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model for which memory is short, where the disk has room for what it lacks, and where it has not."""
    if not may_map(usual_backend()):
        pytest.skip("weights are mapped by the native library")
    monkeypatch.setattr("localrun.hub.fits.disk_rate", lambda: 1e9)
    for name in ("localrun.cli.fit", "localrun.cli.show", "localrun.cli.search", "localrun.cli.consent"):
        monkeypatch.setattr(f"{name}.usual_memory", lambda: Memory(8 << 30, 5 << 30))
    usage = shutil.disk_usage("/")

    def said(free: int) -> tuple[str, ...]:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(total=1 << 40, free=free))
        fit = json.loads(run("fit", "qwen3-8b:Q8_0", "--ctx", "8192", "--json", "--offline")[1])
        shown = json.loads(run("show", "qwen3-8b", "--json", "--offline")[1])["verdict"]["Q8_0"]
        (row,) = (row for row in json.loads(run("search", "qwen3-32b", "--json", "--offline")[1]))
        by_fit = {row["verdict"] for row in fit["rows"]}
        assert len(by_fit) == 1
        return by_fit.pop(), shown, row["verdict"], rough_verdict(9_000_000_000, 5 << 30)

    assert said(100 << 30) == ("disk", "disk", "no", "disk"), "32 billion weights have too many that every token needs"
    assert said(10 << 30) == ("no", "no", "no", "disk"), "the download would leave no room for them"
    assert said(5 << 30) == ("no", "no", "no", "no")
    out = run("fit", "qwen3-8b:Q8_0", "--ctx", "8192", "--offline")[1]
    assert "of its weights would have to stay on disk, where there is room for" in out


def test_pull_says_how_a_model_will_run(hub: FakeHub, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "; fits up to 8,192 tokens of context, about" in run("pull", "org/tiny-GGUF:F16")[2]


def test_without_a_network_the_catalogue_answers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/downloads.md says; a download still fails."""
    monkeypatch.setattr(api, "RETRY_SECONDS", ())
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    code, out, err = run("fit", "llama-3.2-1b", "--json")
    assert (code, err.count("\n")) == (0, 1)
    assert "127.0.0.1 cannot be reached" in err
    assert "estimated from the public shape" in err
    assert {row["approximate"] for row in json.loads(out)["rows"]} == {True}
    code, out, err = run("show", "llama-3.2-1b", "--json")
    assert (code, err.count("\n")) == (0, 1)
    assert "facts from the catalogue (" in err
    assert "127.0.0.1 cannot be reached" in err
    check(json.loads(out), "show")
    assert json.loads(out)["approximate"] is True
    assert run("fit", "org/unknown")[0] == run("show", "org/unknown")[0] == run("pull", "llama-3.2-1b")[0] == 7


def test_without_a_network_fit_answers_of_what_is_on_disk(
    hub: FakeHub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("pull", "org/tiny-GGUF")[0] == 0
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    code, out, err = run("fit", "org/tiny-GGUF", "--json")
    assert (code, err.count("\n")) == (0, 1)
    assert "this is what is on disk" in err
    assert {row["approximate"] for row in json.loads(out)["rows"]} == {False}


def test_download_size_and_memory_size_differ(run: Run) -> None:
    found = json.loads(run("show", "llama-3.3-70b", "--offline", "--json")[1])
    file_bytes, held = found["precisions"]["Q2_K"], found["held_bytes"]["Q2_K"]
    assert file_bytes == pytest.approx(70.6e9 * 3.16 / 8, rel=0.02)
    assert held >= file_bytes
    row = json.loads(run("fit", "llama-3.3-70b:Q2_K", "--offline", "--json")[1])["rows"][0]
    assert (row["file_bytes"], row["weights_bytes"]) == (file_bytes, held)


def test_show_before_a_download(hub: FakeHub, run: Run) -> None:
    code, out, _ = run("show", "org/tiny-GGUF", "--json")
    answer = json.loads(out)
    check(answer, "show")
    assert (code, answer["path"], answer["layers"], answer["vocab_size"]) == (0, None, 2, 320)
    files = hub.repos["org/tiny-GGUF"].files
    assert answer["precisions"] == {"F16": len(files["tiny-F16.gguf"]), "F32": len(files["tiny-F32.gguf"])}
    assert answer["approximate"] is False
    code, out, _ = run("show", "qwen3-4b", "--offline", "--json")
    answer = json.loads(out)
    check(answer, "show")
    assert (answer["layers"], answer["approximate"], answer["licence"]) == (36, True, "Apache-2.0")
    assert "Q4_K_M" in run("show", "qwen3-4b", "--offline")[1]
    assert run("show", "no-such-model")[0] == 3


def test_nothing_is_downloaded_unasked(hub: FakeHub, run: Run) -> None:
    for command in ("run", "chat"):
        code, out, err = run(command, "-m", "org/tiny-GGUF:F16", *(["hello"] if command == "run" else []))
        assert (code, out) == (3, "")
        assert "localrun pull org/tiny-GGUF:F16" in err
    assert hub.seen == []
    assert run("run", "-m", "nonsense", "hello")[0] == 3
    assert run("run", "--offline", "--pull", "-m", "org/tiny-GGUF", "hello")[0] == 3
    assert hub.seen == []


def test_pull_says_yes_beforehand(hub: FakeHub, run: Run) -> None:
    code, out, err = run("run", "--pull", "--no-stdin", "-m", "org/tiny-GGUF", "hello")
    assert (code, out) == (0, "Yes.\n")
    assert "downloaded and checked" in err
    before = len(hub.seen)
    assert run("run", "--no-stdin", "-m", "org/tiny-GGUF", "hello")[0] == 0
    assert len(hub.seen) == before


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 0), ("n", 3), ("what?", 3)])
def test_a_person_is_asked(hub: FakeHub, run: Run, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    terminal(monkeypatch, answer)
    found, _, err = run("run", "--no-stdin", "-m", "org/tiny-GGUF", "hello")
    assert found == code
    for text in ("org/tiny-GGUF (apache-2.0)", "as F16", "up to 8,192 tokens", "Download it now? [Y/n]"):
        assert text in err


def test_what_lies_here_is_not_looked_for_on_the_hub(
    hub: FakeHub, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document under a name of two parts was: without a network it was said that the hub cannot be reached."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/scan.pdf").write_bytes(b"%PDF-1.7")
    terminal(monkeypatch, "y")
    code, _, err = run("run", "--no-stdin", "-m", "docs/scan.pdf", "hello")
    assert code == 3
    assert "write @docs/scan.pdf in a chat" in err
    assert hub.seen == []
    (tmp_path / "org/tiny-GGUF").mkdir(parents=True)  # a folder without a model hides none of the hub
    assert run("run", "--no-stdin", "-m", "org/tiny-GGUF", "hello")[0] == 0


def test_rm_tells_asks_and_removes(hub: FakeHub, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for precision in ("F16", "F32"):
        run("pull", f"org/tiny-GGUF:{precision}")
    code, out, err = run("rm", "org/tiny-GGUF:F16")
    assert code == 2
    assert "add --yes" in err
    terminal(monkeypatch, "n")
    code, _, err = run("rm", "org/tiny-GGUF:F16")
    assert (code, "nothing was removed" in err) == (0, True)
    packed = home / "cache/weights/of-this-model"
    packed.mkdir(parents=True)
    (packed / "layers.0.up.packed").write_bytes(bytes(7))
    write_label(packed, Label(path=str(resolve("org/tiny-GGUF", "F16").path)))
    code, out, err = run("rm", "org/tiny-GGUF:F16", "--yes", "--json")
    answer = json.loads(out)
    check(answer, "rm")
    assert answer["freed"] == len(hub.repos["org/tiny-GGUF"].files["tiny-F16.gguf"]) + 7
    assert f"{packed}: {gib(7)} of packed weights" in err
    assert str(packed) in answer["files"]
    assert not packed.exists()
    assert [row["precision"] for row in json.loads(run("list", "--json")[1]) if row["source"] == "hub"] == ["F32"]
    assert "default" not in err, "another precision of it is left"
    terminal(monkeypatch, "y")
    code, _, err = run("rm", "org/tiny-GGUF")
    assert (code, "it was the default model: builtin answers now" in err) == (0, True)
    assert read_settings().model is None
    assert run("rm", "org/tiny-GGUF", "--yes")[0] == 3
    assert run("rm", "builtin", "--yes")[0] == 2


def test_list_mentions_unfinished_downloads(hub: FakeHub, run: Run, home: Path) -> None:
    hub.break_file("tiny-F32.gguf", "", times=2)  # its header, for its shape and before its download
    hub.break_file("tiny-F32.gguf", "html")
    assert run("pull", "org/tiny-GGUF:F32")[0] == 7
    _, _, err = run("list")
    assert "unfinished: tiny-F32.gguf of org/tiny-GGUF" in err
    assert "localrun pull org/tiny-GGUF" in err
    assert run("rm", "org/tiny-GGUF", "--yes")[0] == 0
    assert "unfinished" not in run("list")[2]


def test_text_from_the_hub_cannot_steer_a_terminal(hub: FakeHub, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos["org/tiny-GGUF"].card["license"] = "evil\x1b]0;title\x07\x1b[2J"
    hub.repos["org/tiny-GGUF"].gguf = {"architecture": "\x1b[31mred", "total": 1}
    for arguments in (["search", "tiny-gguf"], ["show", "org/tiny-GGUF"], ["search", "tiny-gguf", "--json"]):
        _, out, err = run(*arguments)
        assert "\x1b" not in out + err


def test_warnings_about_a_file_are_shown(run: Run, tmp_path: Path) -> None:
    odd = tmp_path / "odd.gguf"
    odd.write_bytes(stub_gguf(tmp_path, "tiny-F16.gguf", more={"GGUF.version": 3, "GGUF.tensor_count": 0}))
    code, out, err = run("show", str(odd), "--json")
    assert (code, json.loads(out)["n_params"]) == (0, N_PARAMS)
    assert "the key 'GGUF.version' passes for what readers say of a file" in err
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (empty / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    code, out, err = run("show", str(empty), "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (6, "bad_model_file")
    assert "there is no tensor in it" in err


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"general.architecture", b"general.architectura", "general.architecture is missing"),
        (b"\0qwen3", b"\0llama", "general.architecture says 'llama', but its keys are those of 'qwen3'"),
        (b"", b"", "the tensor 'output_norm.weight' has a number that is not finite"),
    ],
)
def test_show_says_why_a_file_is_no_model(run: Run, tmp_path: Path, old: bytes, new: bytes, why: str) -> None:
    path = tmp_path / "odd.gguf"
    content = bytearray(stub_gguf(tmp_path, "tiny-F16.gguf").replace(old, new, 1))
    path.write_bytes(content)
    if not old:
        norm = open_gguf(path).tensors["output_norm.weight"]
        content[norm.offset : norm.offset + 4] = struct.pack("<f", math.nan)
        path.write_bytes(content)
    code, out, err = run("show", str(path), "--json")
    answer = json.loads(out)
    assert (code, answer["obstacle"], answer["verdict"], answer["n_params"]) == (0, why, {}, N_PARAMS)
    assert why in err
