"""`localrun perplexity`: how well a model predicts a text."""

import sys
from dataclasses import asdict, replace
from typing import Annotated

import typer

from localrun.base.errors import UsageError
from localrun.base.units import ms, tps
from localrun.cli.console import is_terminal, note, tell, write, write_json
from localrun.cli.groups import JsonSwitch, LoadOptionFlags, ModelOptions
from localrun.cli.session import find_model, open_client
from localrun.cli.text_input import read_text_file

CHUNK = 512


def perplexity(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] FILE", show_default=False)],
    *,
    model: ModelOptions,
    load: LoadOptionFlags,
    chunks: Annotated[int | None, typer.Option("--chunks", min=1, metavar="N", help="score only the first N")] = None,
    json: JsonSwitch = False,
) -> int:
    """Perplexity on a text: chunks of --ctx tokens (512), the second half of each scored. FILE - is stdin."""
    if len(words) > 2 or (len(words) == 2 and model.model):
        raise UsageError(f"{len(words)} words where [MODEL] FILE is expected", "localrun perplexity -m MODEL FILE")
    named = words[0] if len(words) == 2 else model.model
    stored = find_model(replace(model, model=named))
    text = read_text_file(words[-1])
    ctx = load.ctx or CHUNK
    with open_client(stored, replace(load, ctx=ctx)) as client:
        from localrun.diagnose.perplexity import perplexity as measure

        progress = _progress if is_terminal(sys.stderr) else _silent
        measured = measure(client.model, text, ctx=ctx, max_chunks=chunks, progress=progress)
        info = client.info
    if json:
        write_json({"model": info.name, **asdict(measured), "kv_codec": info.kv_codec})
        return 0
    note(
        f"{info.name} {info.precision}: {measured.tokens:,} tokens in {measured.chunks} chunks of {measured.ctx},"
        f" {ms(1000 * measured.seconds)}, {tps(measured.chunks * measured.ctx / measured.seconds)}"
    )
    write(f"{measured.ppl:.4f} ± {measured.ppl_stderr:.4f}\n")
    return 0


def _progress(done: int, total: int, ppl: float) -> None:
    end = "\n" if done == total else ""
    tell(f"\r{done}/{total} chunks, perplexity so far {ppl:.4f} {end}")


def _silent(done: int, total: int, ppl: float) -> None:
    pass
