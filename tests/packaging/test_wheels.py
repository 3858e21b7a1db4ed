"""Both wheels, built from what is committed, each in a fresh environment, used from another folder."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY

from localrun.backends.cpu.library import FILE_NAME

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheels")]
KINDS = ("native", "pure")


def tracked(folder: str = ".") -> list[str]:
    listed = subprocess.run(["git", "ls-files", folder], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (REPOSITORY / name).is_file()]


def build(source: Path, out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A wheel with the tools at hand; a missing compiler is made by naming one that fails."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(out), str(source)]
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if name != "LOCALRUN_REQUIRE_NATIVE"}
    return subprocess.run(command, env={**inherited, "PATH": tools, **environment}, capture_output=True, text=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked files: nothing that only this folder has may help the build."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheels(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("wheels")
    built = {}
    for kind, environment in (("native", {"LOCALRUN_REQUIRE_NATIVE": "1"}), ("pure", {"CXX": "/bin/false"})):
        done = build(checkout, out / kind, **environment)
        assert done.returncode == 0, done.stderr
        (built[kind],) = (out / kind).glob("*.whl")
    return built


def test_a_failed_compile_is_a_failed_build_where_the_library_is_required(checkout: Path, tmp_path: Path) -> None:
    done = build(checkout, tmp_path, CXX="/bin/false", LOCALRUN_REQUIRE_NATIVE="1")
    assert done.returncode != 0
    assert list(tmp_path.glob("*.whl")) == []


def test_wheel_names_and_files(wheels: dict[str, Path]) -> None:
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheels["pure"].name.endswith("-py3-none-any.whl")
    assert "-py3-none-" in wheels["native"].name
    assert platform.split("_")[0] in wheels["native"].name
    app = {name.removeprefix("tui/") for name in tracked("tui")}
    kernels = {f"localrun/{name}" for at in ("cuda", "metal") for name in tracked(f"kernels/{at}")}
    ours = {*tracked("localrun"), *app, *kernels, "localrun/models.toml"}
    for kind, extra in (("native", {f"localrun/backends/cpu/{FILE_NAME}"}), ("pure", set())):
        with zipfile.ZipFile(wheels[kind]) as archive:
            names = {name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith("/")}
        assert names == ours | extra


@pytest.mark.parametrize("kind", KINDS)
def test_an_installed_wheel_answers_from_another_folder(kind: str, wheels: dict[str, Path], tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    python = venv / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--quiet"]
    subprocess.run([*install, str(wheels[kind])], check=True)
    site = Path(
        subprocess.check_output([python, "-c", "import site; print(site.getsitepackages()[0])"], text=True).strip()
    )
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])  # torch and the like, not installed again

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def localrun(*arguments: str) -> str:
        command = [str(venv / "bin" / "localrun"), *arguments]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            command,
            cwd=elsewhere,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = json.loads(localrun("show", "--json"))
    assert Path(shown["path"]).is_relative_to(venv)
    answer = json.loads(localrun("run", "--json", "--max-tokens", "8", "--seed", "1", "Hello!"))
    assert answer["completion_tokens"] > 0
    assert json.loads(localrun("tokenize", "Hello!"))
    cpu = json.loads(localrun("doctor", "--json"))["backends"]["cpu"]
    if kind == "native":
        assert Path(cpu["library"]).is_relative_to(venv)
    else:
        assert cpu["library"] is None
        assert "without the native library" in cpu["reason"]
