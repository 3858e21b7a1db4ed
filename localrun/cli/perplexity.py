"""`localrun perplexity`: how well a model predicts a text."""

import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from localrun.base.errors import UsageError
from localrun.base.events import ModelInfo
from localrun.base.request import KVCodecName
from localrun.base.units import ms, percent, tps
from localrun.cli.completion import complete_model, complete_word
from localrun.cli.console import is_terminal, note, tell, write, write_json
from localrun.cli.groups import JsonSwitch, LoadOptionFlags, ModelOptions
from localrun.cli.session import find_model, open_measured
from localrun.cli.text_input import read_text_file

if TYPE_CHECKING:
    from localrun.diagnose.perplexity import Perplexity

CHUNK = 512


def perplexity(
    words: Annotated[
        list[str], typer.Argument(metavar="[MODEL] FILE", show_default=False, autocompletion=complete_model)
    ],
    *,
    model: ModelOptions,
    load: LoadOptionFlags,
    chunks: Annotated[int | None, typer.Option("--chunks", min=1, metavar="N", help="score only the first N")] = None,
    kv_baseline: Annotated[
        str | None,
        typer.Option(
            "--kv-baseline",
            metavar="CODEC",
            help="compare --kv with this codec on the same chunks: f16 …",
            autocompletion=complete_word(*get_args(KVCodecName)[1:]),
        ),
    ] = None,
    json: JsonSwitch = False,
) -> int:
    """Perplexity on a text: chunks of --ctx tokens (512), the second half of each scored. FILE - is stdin."""
    if len(words) > 2 or (len(words) == 2 and model.model):
        raise UsageError(f"{len(words)} words where [MODEL] FILE is expected", "localrun perplexity -m MODEL FILE")
    baseline = check_codec(kv_baseline)
    named = words[0] if len(words) == 2 else model.model
    stored = find_model(replace(model, model=named))
    text = read_text_file(words[-1])
    ctx = load.ctx or CHUNK
    with open_measured(stored, replace(load, ctx=ctx)) as client:
        from localrun.diagnose.perplexity import perplexity as measure

        progress = _progress if is_terminal(sys.stderr) else _silent
        measured = measure(client.model, text, ctx=ctx, max_chunks=chunks, baseline=baseline, progress=progress)
        info = client.info
    if json:
        write_json(_as_fields(measured, info, baseline))
    else:
        _print(measured, info, baseline)
    return 0


def _as_fields(measured: "Perplexity", info: ModelInfo, baseline: str | None) -> dict[str, Any]:
    """The fields of `perplexity --json`."""
    fields = asdict(measured)
    compared = fields.pop("comparison") or {}
    extra = {"kv_baseline": baseline, **compared} if compared else {}
    return {"model": info.name, **fields, "kv_codec": info.kv_codec, **extra}


def _print(measured: "Perplexity", info: ModelInfo, baseline: str | None) -> None:
    note(
        f"{info.name} {info.precision}: {measured.tokens:,} tokens in {measured.chunks} chunks of {measured.ctx},"
        f" {ms(1000 * measured.seconds)}, {tps(measured.chunks * measured.ctx / measured.seconds)}"
    )
    write(f"{measured.ppl:.4f} ± {measured.ppl_stderr:.4f}\n")
    if measured.comparison is not None:
        same, kld = measured.comparison.same_top1, measured.comparison.kld_mean
        what = f"mean KL divergence {kld:.6f}, same first choice {percent(same, 2)}"
        write(f"{info.kv_codec} against {baseline}: {what}\n")


def check_codec(name: str | None) -> str | None:
    """Check the name of a KV codec; `auto` is refused, because a comparison needs a fixed one."""
    known = [codec for codec in get_args(KVCodecName) if codec != "auto"]
    if name is not None and name.lower() not in known:
        raise UsageError(f"there is no KV codec {name!r}", f"choose one of: {', '.join(known)}")
    return name and name.lower()


def _progress(done: int, total: int, ppl: float) -> None:
    end = "\n" if done == total else ""
    tell(f"\r{done}/{total} chunks, perplexity so far {ppl:.4f} {end}")


def _silent(done: int, total: int, ppl: float) -> None:
    pass
