"""First lines of docstrings are an imperative or a noun phrase with the field's word."""

import ast
import re

from localrun_testing import REPOSITORY

ROOMS = ("localrun", "tui")
PARAPHRASES = ("What", "So many", "Gives", "All that", "Whoever", "Nobody", "Those", "That", "Takes", "Tells", "Begins")
# Of what? Whose? Who does?
WITHOUT_A_NOUN = ("Of", "By", "As", "It", "Its", "From", "To", "With", "On", "Until", "None")
BANNED = (*PARAPHRASES, *WITHOUT_A_NOUN)
OPENER = re.compile(rf"({'|'.join(BANNED)})\b")


def first_lines(source: str) -> list[str]:
    """First docstring lines of a module, its classes and functions."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, documented))
    return [text.partition("\n")[0] for node in nodes if (text := ast.get_docstring(node))]


def test_no_docstring_begins_with_a_paraphrase() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}: {line}"
        for room in ROOMS
        for path in sorted((REPOSITORY / room).rglob("*.py"))
        for line in first_lines(path.read_text("utf-8"))
        if OPENER.match(line)
    ]
    assert found == [], f"begin with an imperative or a noun instead of {', '.join(BANNED)}"


def test_every_kind_of_docstring_is_looked_at() -> None:
    source = '"""What a."""\nclass A:\n "So many b."\n async def f(self):\n  "Of c."\ndef g():\n "Offset of d."\n'
    assert {line for line in first_lines(source) if OPENER.match(line)} == {"What a.", "So many b.", "Of c."}
