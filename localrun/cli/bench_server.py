"""`localrun bench --server`: rates of a model on a server, as they arrive here."""

from collections.abc import Sequence

from localrun.base.errors import UsageError
from localrun.base.units import ms
from localrun.cli.console import note, show_progress, write, write_json
from localrun.client.choice import ModelChoice
from localrun.client.remote.bench import ServerCase, ServerRun, bench_server
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint


def bench_on_server(
    choice: ModelChoice, prompt: int, generate: int, batches: Sequence[int], repeats: int, json: bool
) -> int:
    """Measure and show a model on a server. Raises LocalrunError."""
    assert isinstance(choice.stored, Endpoint)
    if prompt + generate == 0:
        raise UsageError("-p 0 and -n 0 leave nothing to measure", "leave one out")
    cases = [ServerCase("prefill", prompt)] if prompt else []
    cases += [ServerCase("decode", generate, batch) for batch in batches] if generate else []
    with RemoteClient(choice.stored) as client:
        note(client.info.notes[0])
        runs = bench_server(client, cases, repeats, show_progress)
        name = client.info.name
    show_progress("")
    if json:
        about = {"model": name, "backend": "remote", "threads": 0, "limits": None, "weights_bytes": 0}
        write_json({**about, "runs": [_as_json(run) for run in runs]})
        return 0
    write(f"{name} on a server, as it arrives here: network and queue included\n")
    for run in runs:
        case = f"{run.case.kind:<8}{run.case.n:>6} tokens  batch {run.case.batch:<3}"
        write(f"{case}{run.tps_median:>10.1f} tok/s  first token after {ms(run.ttft_ms)}\n")
    return 0


def _as_json(run: ServerRun) -> dict[str, object]:
    return {
        "kind": run.case.kind,
        "n": run.case.n,
        "depth": 0,
        "batch": run.case.batch,
        "tps_median": run.tps_median,
        "tps_best": max(run.tps),
        "tps_all": run.tps,
        "percent_of_limit": None,
        "diagnosis": "",
        "ttft_ms": run.ttft_ms,
    }
