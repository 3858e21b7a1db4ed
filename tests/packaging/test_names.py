"""Names and sizes: one type a name, so that a search ends at its first hit; files and functions that can be read."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from localrun_testing.product import Module, module_of, modules

from localrun.backends.cpu.abi import AnyOp

MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60
ABI = {f"localrun/backends/cpu/{name}.py" for name in ("abi", "abi_latent", "abi_recurrent", "abi_step", "abi_values")}
# Structures of the C ABI are called as what they are translated from, and are used as `abi.Name`.
MIRRORED = {kind.__name__ for _, kind, *_ in AnyOp._fields_} | {"Candidates", "Instruction", "Value"}


def homonyms(found: Iterable[Module]) -> dict[str, list[str]]:
    """Names of types that more than one module has, with those modules."""
    places = defaultdict(list)
    for module in found:
        for name in module.types:
            if not (module.path in ABI and name in MIRRORED):
                places[name].append(module.path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_every_public_type_has_a_name_of_its_own() -> None:
    assert homonyms(modules()) == {}, "say of what it is: DownloadProgress, not Progress"


def test_homonyms_are_noticed(tmp_path: Path) -> None:
    sources = {
        "a.py": "class Box: ...\nclass Lid: ...\nT = TypeVar('T')",
        "b.py": "Box = int | str\nKey: TypeAlias = int\nT = TypeVar('T')",
        "c.py": "Key = str\nLID = 1\nclass _Lid: ...",
    }
    for name, source in sources.items():
        (tmp_path / name).write_text(source)
    found = [module_of(name, tmp_path / name) for name in sources]
    assert homonyms(found) == {"Box": ["a.py", "b.py"], "Key": ["b.py", "c.py"]}


def test_files_are_short() -> None:
    assert {one.path: one.n_lines for one in modules() if one.n_lines > MAX_FILE_LINES} == {}


def test_functions_are_short() -> None:
    lengths = {place: lines for module in modules() for place, lines in module.functions.items()}
    assert {place: lines for place, lines in lengths.items() if lines > MAX_FUNCTION_LINES} == {}
