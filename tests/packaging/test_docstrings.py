"""First lines of docstrings are an imperative or a noun phrase with the field's word."""

import re
from pathlib import Path

from localrun_testing.product import module_of, modules

PARAPHRASES = ("What", "So many", "Gives", "All that", "Whoever", "Nobody", "Those", "That", "Takes", "Tells", "Begins")
# Of what? Whose? Who does?
WITHOUT_A_NOUN = ("Of", "By", "As", "It", "Its", "From", "To", "With", "On", "Until", "None")
BANNED = (*PARAPHRASES, *WITHOUT_A_NOUN)
OPENER = re.compile(rf"({'|'.join(BANNED)})\b")


def test_no_docstring_begins_with_a_paraphrase() -> None:
    found = [f"{module.path}: {line}" for module in modules() for line in module.docstrings if OPENER.match(line)]
    assert found == [], f"begin with an imperative or a noun instead of {', '.join(BANNED)}"


def test_every_kind_of_docstring_is_looked_at(tmp_path: Path) -> None:
    source = '"""What a."""\nclass A:\n "So many b."\n async def f(self):\n  "Of c."\ndef g():\n "Offset of d."\n'
    (tmp_path / "x.py").write_text(source)
    lines = module_of("x", tmp_path / "x.py").docstrings
    assert {line for line in lines if OPENER.match(line)} == {"What a.", "So many b.", "Of c."}
