"""`localrun bench`: prefill and decode rates of a model, beside the limits of this machine."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from localrun.base.errors import UsageError
from localrun.cli.console import note, show_progress, write, write_json
from localrun.cli.groups import DraftOption, JsonSwitch, LoadOptionFlags, ModelArgument, ModelOptions, ServerOption
from localrun.cli.server_choice import on_server
from localrun.cli.session import find_model, open_measured

if TYPE_CHECKING:
    from localrun.diagnose.bench import Bench
    from localrun.diagnose.bench_drafts import DraftRun


def bench(
    word: ModelArgument = None,
    *,
    model: ModelOptions,
    load: LoadOptionFlags,
    prompt: Annotated[int, typer.Option("-p", min=0, metavar="N", help="tokens of prefill, 0: none")] = 512,
    generate: Annotated[int, typer.Option("-n", min=0, metavar="N", help="tokens of decode, 0: none")] = 64,
    depth: Annotated[list[int] | None, typer.Option("-d", min=0, metavar="N", help="tokens already cached")] = None,
    repeats: Annotated[int, typer.Option("-r", min=1, metavar="N", help="rounds, after one to warm up")] = 5,
    batch: Annotated[list[int] | None, typer.Option("-b", min=1, metavar="N", help="sequences side by side")] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option("--compare", metavar="A B", help="two models, or two precisions of MODEL, side by side"),
    ] = None,
    draft: DraftOption = None,
    server: ServerOption = None,
    json: JsonSwitch = False,
) -> int:
    """Prefill and decode rates beside the measured limits of this machine. -d and -b may be given more than once.
    --draft measures answers with drafts, too."""
    model = replace(model, model=word or model.model)
    if server is not None:
        from localrun.cli.bench_server import bench_on_server

        held = {"precision": model.precision, **asdict(load), "d": depth, "compare": compare, "draft": draft}
        return bench_on_server(on_server(server, model.model, held), prompt, generate, batch or [1], repeats, json)
    if compare is not None:
        if depth or batch or draft:
            raise UsageError("--compare measures without -d, -b and --draft", "leave them out")
        from localrun.cli.bench_compare import bench_compare

        return bench_compare(model, load, compare, (prompt, generate, repeats), json)
    stored = find_model(model)
    wanted = [(d, b) for d in depth or [0] for b in batch or [1]]
    load = replace(load, ctx=load.ctx or 0, no_prefix_cache=load.no_prefix_cache or draft is not None)
    with open_measured(stored, load, draft or "off") as client:
        from localrun.diagnose.bench import BenchCase
        from localrun.diagnose.bench import bench as measure
        from localrun.diagnose.bench_drafts import bench_drafts

        cases = [BenchCase("prefill", prompt, d, 1) for d in dict.fromkeys(d for d, _ in wanted) if prompt]
        cases += [BenchCase("decode", generate, d, b) for d, b in wanted if generate]
        measured = measure(client.model, cases, repeats, show_progress)
        drafts = bench_drafts(client.model, generate, repeats, show_progress) if draft not in (None, "off") else []
    show_progress("")
    if json:
        limits = asdict(measured.limits) if measured.limits else None
        write_json({**asdict(measured), "limits": limits, "drafts": [asdict(run) for run in drafts]})
        return 0
    _print(measured, drafts)
    return 0


def _print(measured: "Bench", drafts: "list[DraftRun]") -> None:
    write(f"{measured.model} on {measured.backend}, {measured.threads} threads\n")
    for run in measured.runs:
        share = "" if run.percent_of_limit is None else f"  {run.percent_of_limit:5.1f} % of the limit"
        case = f"{run.kind:<8}{run.n:>6} tokens  depth {run.depth:<6} batch {run.batch:<3}"
        write(f"{case}{run.tps_median:>10.1f} tok/s{share}\n")
    for one in drafts:
        gain, right = one.tps / one.plain_tps, f"{one.accepted_tokens:,} of {one.drafted_tokens:,} guesses right"
        right = right if one.drafted_tokens else "no guess was worth its time"
        case = f"drafts  {one.n:>6} tokens  {one.text:<22}"
        write(f"{case}{one.tps:>10.1f} tok/s  {gain:.2f} times as fast as without, {right}\n")
    for run in measured.runs:
        if run.diagnosis:
            note(f"{run.kind} at depth {run.depth}: {run.diagnosis}")
    if measured.limits:
        found = measured.limits
        note(
            f"limits: {found.read_gbps:.1f} GB/s read (decode), {found.int8_gmacs:.0f} G int8 multiply-adds/s"
            f" (prefill), {found.bf16_gmacs:.0f} G 16-bit"
        )
