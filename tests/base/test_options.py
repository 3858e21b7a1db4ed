import ast
import re
from pathlib import Path

import pytest
from localrun_testing import REPOSITORY

from localrun.base.errors import UsageError
from localrun.base.options import in_app, in_python, python_spelling

ROOMS = ("base", "cache", "chat", "client", "diagnose", "engine", "fit", "formats", "model", "ops", "text")
OF_OTHER_PROGRAMS = ("engines.py", "serve_lines.py")  # options of vLLM and SGLang


@pytest.mark.parametrize(
    ("said", "python"),
    [
        ("try --ctx 4096", "try ctx=4096"),
        ("try --ctx 4096.", "try ctx=4096."),
        ("a smaller context (--ctx 4096)", "a smaller context (ctx=4096)"),
        ("--kv k8v4 and --kv q8 are safer", 'kv="k8v4" and kv="q8" are safer'),
        ("leave --backend away", "leave backend away"),
        ("with --repeat-penalty 1.1", "with repeat_penalty=1.1"),
        ("it needs --max-tokens", "it needs max_tokens"),
        ("--no-prefix-cache computes all", "prefix_cache=False computes all"),
        ("run it with --precision int8", 'run it with precision="int8"'),
        ("a file called my--ctx 12.gguf", "a file called my--ctx 12.gguf"),
        ("models--org--repo, and `localrun rm --yes`", "models--org--repo, and `localrun rm --yes`"),
    ],
)
def test_python_spells_options_its_own_way(said: str, python: str) -> None:
    assert in_python(said) == python


@pytest.mark.parametrize(
    ("said", "app"),
    [
        ("try --ctx 4096", "try F7: ctx 4096"),
        ("a smaller context (--ctx 4096), or", "a smaller context (F7: ctx 4096), or"),
        ("give the model a larger context with --ctx", "give the model a larger context with F7"),
        ("--kv k8v4 and --kv q8 are safer", "F7: kv k8v4 and kv q8 are safer"),
        (
            "run it with --precision int8, or --backend reference",
            "run it with F7: precision int8, or F3: backend reference",
        ),
        ("a file called my--ctx 12.gguf", "a file called my--ctx 12.gguf"),
        ("`localrun doctor --yes`", "`localrun doctor --yes`"),
        ("`localrun rm` removes a model", "Del in Models (Ctrl+O) removes a model"),
        ("`localrun cache clear` what is cached", "Storage in Models (s) what is cached"),
        ("check the path, or see `localrun list`", "check the path, or see On disk in Models (Ctrl+O)"),
        ("`localrun history list` shows them", "Ctrl+L shows them"),
        ("a b: `localrun pull a/b`", "a b: a/b in Models (Ctrl+O)"),
        ("`localrun search TERM` finds models", "the Hub in Models (Ctrl+O) finds models"),
        ("`localrun listen`", "`localrun listen`"),
        ("it goes into HF_TOKEN, or /token of the app; try it", "it goes into “Hugging Face token” (Ctrl+P); try it"),
        ("a private one needs HF_TOKEN", "a private one needs “Hugging Face token” (Ctrl+P)"),
        ("unset HF_TOKEN if that is not yours", "unset HF_TOKEN if that is not yours"),
    ],
)
def test_the_app_names_keys_in_the_place_of_options(said: str, app: str) -> None:
    assert in_app(said) == app


def test_errors_leave_with_both_their_sentences_respelled() -> None:
    with pytest.raises(UsageError) as caught, python_spelling():
        raise UsageError("--ctx 9 is too small", "try --ctx 4096")
    assert (caught.value.message, caught.value.hint, str(caught.value)) == (
        "ctx=9 is too small",
        "try ctx=4096",
        "ctx=9 is too small",
    )


def test_every_option_that_a_message_below_the_faces_names_can_be_respelled() -> None:
    flag = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    unknown = []
    files = (file for room in ROOMS for file in (REPOSITORY / "localrun" / room).rglob("*.py"))
    for path in (file for file in files if file.name not in OF_OTHER_PROGRAMS):
        for text in _texts(path) if flag.search(path.read_text("utf-8")) else ():
            unknown += [
                f"{path.name}: {text}" for found in flag.findall(_without_commands(text)) if found in in_python(text)
            ]
    assert not unknown


def _texts(path: Path) -> list[str]:
    """The texts of a file that are no documentation."""
    tree = ast.parse(path.read_text("utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documents)
    return [node.value for node in constants if isinstance(node.value, str)]


def _without_commands(text: str) -> str:
    return re.sub(r"`localrun [^`]*`", "", text)
