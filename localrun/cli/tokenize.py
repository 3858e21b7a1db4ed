"""`localrun tokenize`: text to token ids, as the model sees them."""

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localrun.base.errors import UsageError
from localrun.cli.console import write_json
from localrun.cli.groups import ModelOptions, switch
from localrun.cli.session import find_model
from localrun.cli.text_input import read_stdin, typed_text

if TYPE_CHECKING:
    from localrun.text.tokenizer import Tokenizer


def tokenize(
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="default: stdin", show_default=False)] = None,
    *,
    model: ModelOptions,
    special: Annotated[bool, switch("--special", "encode the text of a control token as that token")] = False,
    bos: Annotated[bool, switch("--bos", "add BOS where the model uses it")] = False,
    lines: Annotated[bool, switch("--lines", "stdin is one JSON string a line; so is the answer, in lists")] = False,
) -> int:
    """The token ids of a text, as a JSON list on one line. Reads only the vocabulary of the model."""
    if lines and text is not None:
        raise UsageError("--lines reads stdin; TEXT is one text", "leave one of them out")
    stored = find_model(model)
    tokenizer = _tokenizer(stored.path)
    whole = read_stdin("reading stdin …") if text is None else typed_text(text)
    texts = _json_strings(whole) if lines else [whole]
    for each in texts:
        write_json(tokenizer.encode(each, special=special, bos=bos))
    return 0


def _tokenizer(path: Path) -> "Tokenizer":
    """Load the tokenizer of a model; weights and config are not read."""
    from localrun.formats.detect import open_model_file
    from localrun.formats.gguf import GgufFile
    from localrun.text.tokenizer import tokenizer_from_folder, tokenizer_from_gguf

    source = open_model_file(path)
    if isinstance(source, GgufFile):
        return tokenizer_from_gguf(source.metadata, source.path)
    return tokenizer_from_folder(source.folder)


def _json_strings(text: str) -> list[str]:
    strings = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json_format.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, str):
            raise UsageError(f"line {number} of stdin is not a JSON string", 'one "…" a line is needed with --lines')
        strings.append(value)
    return strings
