"""Benchmarks are started in one way, and say what they measure before they begin."""

import ast
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY

SCRIPTS = [
    path
    for path in sorted((REPOSITORY / "benchmarks").glob("*.py"))
    if 'if __name__ == "__main__":' in path.read_text("utf-8")
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_is_a_module_with_a_help(path: Path) -> None:
    source = path.read_text("utf-8")
    assert f"python -m benchmarks.{path.stem}" in (ast.get_docstring(ast.parse(source)) or ""), "how it is started"
    assert "parse_args(" in source, "--help would measure"


def test_benchmarks_import_each_other_from_their_package_only() -> None:
    stems = {path.stem for path in (REPOSITORY / "benchmarks").glob("*.py")}
    for path in (REPOSITORY / "benchmarks").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module not in stems, f"{path.name} imports {node.module}, which is benchmarks.{node.module}"
