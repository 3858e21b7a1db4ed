"""`localrun handover`: a model on GPUs of other machines: the checkpoint, the memory, and the lines that start it."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from localrun.base.errors import LocalrunError, UsageError
from localrun.base.units import gib, tps
from localrun.cli.completion import complete_any_model
from localrun.cli.console import write, write_json, write_table
from localrun.cli.downloads import open_hub
from localrun.cli.failure import DOES_NOT_FIT
from localrun.cli.groups import JsonSwitch, OfflineSwitch, switch
from localrun.fit.gpus import Gpus, parse_gpus
from localrun.fit.handover import Handover, HandoverRow, gpus_needed, hand_over
from localrun.fit.serve_lines import HEAD, PORT, sglang_lines, vllm_lines
from localrun.hub.remote.checkpoints import find_checkpoint

USUAL_GPU = 80 << 30

_Model = Annotated[str, typer.Argument(metavar="MODEL", autocompletion=complete_any_model)]
_Gpus = Annotated[str, typer.Option("--gpus", metavar="4x80GiB", help="GPUs of each machine: 4x80GiB, 8xH100")]
_Nodes = Annotated[int, typer.Option("--nodes", metavar="N", min=1, max=1024, help="machines with as many GPUs each")]
_Context = Annotated[int | None, typer.Option("--ctx", metavar="N", min=1, help="context, in tokens; else the longest")]
_Parallel = Annotated[int, typer.Option("--parallel", metavar="N", min=1, max=4096, help="chats of it side by side")]
_Check = Annotated[bool, switch("--check", "exit code 4 when there is no room")]


def handover(
    model: _Model,
    gpus: _Gpus,
    nodes: _Nodes = 1,
    ctx: _Context = None,
    parallel: _Parallel = 1,
    check: _Check = False,
    offline: OfflineSwitch = False,
    json: JsonSwitch = False,
) -> int:
    """Plan a model on GPUs: the memory it needs, and the lines that start vLLM or SGLang there. Nothing is started."""
    try:
        wanted = parse_gpus(gpus, nodes)
    except ValueError as error:
        raise UsageError(f"--gpus {gpus} is no choice of GPUs", str(error)) from None
    with open_hub(offline) as http:
        checkpoint = find_checkpoint(http, model)
    most = checkpoint.shape.config.max_context
    if ctx and ctx > most:
        asked = f"a context of {ctx:,} tokens is more than the {most:,} this model was made for"
        raise UsageError(asked, f"try --ctx {most}")
    plan = hand_over(checkpoint, wanted, ctx, parallel)
    if json:
        write_json(as_json(plan))
    else:
        _print(plan, ctx)
    return DOES_NOT_FIT if check and plan.chosen is None else 0


def as_json(plan: Handover) -> dict[str, Any]:
    """A plan as `handover --json` and `fit --json` have it."""
    checkpoint, gpus = plan.checkpoint, plan.gpus
    return {
        "checkpoint": checkpoint.repo,
        "weight_bytes": checkpoint.weight_bytes,
        "approximate": checkpoint.approximate,
        "gpus": gpus.each,
        "gpu_bytes": gpus.nbytes,
        "nodes": gpus.nodes,
        "tensor_parallel": plan.tensor_parallel,
        "pipeline_parallel": plan.pipeline_parallel,
        "parallel": plan.chats,
        "rows": [{**asdict(row), "chosen": row is plan.chosen} for row in plan.rows],
        "vllm": vllm_lines(plan),
        "sglang": sglang_lines(plan),
    }


def usual_plan(model: str, ctx: int, chats: int, offline: bool) -> Handover | None:
    """The plan for a model that has no room here, on the fewest usual GPUs; None where its checkpoint is not known."""
    try:
        with open_hub(offline) as http:
            checkpoint = find_checkpoint(http, model)
    except LocalrunError:
        return None
    ctx = min(ctx, checkpoint.shape.config.max_context)
    enough = gpus_needed(checkpoint, USUAL_GPU, ctx, chats)
    return hand_over(checkpoint, enough, ctx, chats) if enough else None


def print_hint(model: str, plan: Handover) -> None:
    """Write that another machine has room, below the table of `fit`."""
    about, gpus = "≈" if plan.checkpoint.approximate else "", gpus_text(plan.gpus)
    write(f"\nElsewhere {plan.checkpoint.repo} has room ({about}{gib(plan.checkpoint.weight_bytes)}), as on {gpus}:\n")
    write("".join(f"  {line}\n" for line in vllm_lines(plan)))
    write(f"`localrun handover {model} --gpus {gpus}` says what it takes there, and on other GPUs.\n")


def gpus_text(gpus: Gpus) -> str:
    """GPUs as --gpus and --nodes take them."""
    size = gpus.name or f"{gpus.nbytes / (1 << 30):g}GiB"
    return f"{gpus.each}x{size}" + (f" --nodes {gpus.nodes}" if gpus.nodes > 1 else "")


def _print(plan: Handover, ctx: int | None) -> None:
    checkpoint, gpus = plan.checkpoint, plan.gpus
    about = "≈" if checkpoint.approximate else ""
    machines = f"{gpus.nodes} machines with " if gpus.nodes > 1 else ""
    write(f"{checkpoint.repo}: {about}{gib(checkpoint.weight_bytes)} of weights on {machines}")
    write(f"{gpus.each} GPU{'s' if gpus.each > 1 else ''} of {gib(gpus.nbytes)}\n")
    write(f"split: tensor parallel {plan.tensor_parallel}, pipeline parallel {plan.pipeline_parallel}\n\n")
    head = ("CACHE", "CONTEXT", "WEIGHTS", "KV", "OTHER", "OF A GPU", "LONGEST", "SPEED")
    write_table([head, *map(_columns, plan.rows)])
    write(
        "\nBytes are those of one GPU; a total with - does not fit. What is not weights or KV cache is an estimate.\n"
    )
    if gpus.read_bytes:
        write("Speed is that of one chat by the memory of the GPUs alone, links between them not counted: at most.\n")
    used = plan.tensor_parallel * plan.pipeline_parallel
    if used < gpus.count:
        write(f"{used} of {gpus.count} GPUs are used: its heads and layers do not divide by more.\n")
    if plan.chosen is None:
        _print_need(plan, ctx)
    else:
        _print_lines(plan)


def _print_need(plan: Handover, ctx: int | None) -> None:
    enough = gpus_needed(plan.checkpoint, plan.gpus.nbytes, ctx or plan.rows[0].ctx, plan.chats)
    if enough is None:
        write("\nThere is no room for it on such GPUs.\n")
    else:
        named = Gpus(enough.each, enough.nbytes, enough.nodes, 0.0, plan.gpus.name)
        write(f"\nThere is no room for it: it takes --gpus {gpus_text(named)}.\n")


def _print_lines(plan: Handover) -> None:
    several = plan.gpus.nodes > 1
    where = f", a line on each machine, with the address of the first for {HEAD}" if several else ""
    for name, lines in (("vLLM", vllm_lines(plan)), ("or SGLang", sglang_lines(plan))):
        write(f"\n{name}{where}:\n" + "".join(f"  {line}\n" for line in lines))
    host = HEAD if several else "HOST"
    write(f"\nThen `localrun host add NAME http://{host}:{PORT}/v1` puts it behind run, chat and the app.\n")


def _columns(row: HandoverRow) -> tuple[str, ...]:
    total = gib(row.gpu_total_bytes) if row.fits else "-"
    speed = "" if row.est_decode_tps is None else f"≤ {tps(row.est_decode_tps)}"
    return (
        "bf16" if row.kv_cache_dtype == "auto" else row.kv_cache_dtype,
        f"{row.ctx:,}",
        gib(row.gpu_weight_bytes),
        gib(row.gpu_kv_bytes),
        f"~{gib(row.gpu_other_bytes)}",
        f"{total} of {gib(row.gpu_usable_bytes)}",
        f"{row.max_ctx:,}" if row.max_ctx else "-",
        speed,
    )
