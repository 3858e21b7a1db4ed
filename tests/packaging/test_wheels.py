"""Wheels built from what is committed, each in a fresh environment, used from another folder."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY

from localrun.backends.cpu.library import FILE_NAME

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheels")]
RECIPE = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]["windows"]
ZIG = {f"ZIG_{kind}_CACHE_DIR": str(REPOSITORY / "build" / "zig") for kind in ("GLOBAL", "LOCAL")}
KINDS: dict[str, dict[str, str]] = {
    "native": {"LOCALRUN_REQUIRE_NATIVE": "1"},
    "pure": {"CXX": "/bin/false"},
    "native as on Windows": {**RECIPE["environment"], **ZIG},  # by its compiler, for the system at hand
}


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
    for kind, environment in KINDS.items():
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
    for kind in ("native", "native as on Windows"):
        assert "-py3-none-" in wheels[kind].name
        assert platform.split("_")[0] in wheels[kind].name
    app = {name.removeprefix("tui/") for name in tracked("tui")}
    kernels = {f"localrun/{name}" for at in ("cuda", "metal") for name in tracked(f"kernels/{at}")}
    ours = {*tracked("localrun"), *app, *kernels, "localrun/models.toml"}
    for kind in KINDS:
        extra = set() if kind == "pure" else {f"localrun/backends/cpu/{FILE_NAME}"}
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

    script = tmp_path / "try_wheel.py"
    shutil.copy2(Path(__file__).with_name(script.name), script)
    tried = subprocess.run([python, script, kind.split()[0]], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert tried.returncode == 0, tried.stderr
    shown = subprocess.run([venv / "bin" / "localrun", "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
