"""lm-eval's loglikelihood over a server, beside `localrun perplexity` of the same text."""

import json

import httpx
import pytest
from localrun_testing import REPOSITORY
from localrun_testing.cli import localrun
from localrun_testing.client_programs import SMOL, Client

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.xdist_group("clients")]
CTX = 64
SCORED = CTX // 2 + 1  # the first token that perplexity scores
TASK = {
    "task": "rest",
    "dataset_path": "json",
    "test_split": "test",
    "output_type": "loglikelihood",
    "doc_to_text": "{{context}}",
    "doc_to_target": "{{rest}}",
    "target_delimiter": "",
    "metric_list": [{"metric": "perplexity"}],
}


def test_loglikelihood_is_that_of_perplexity(client: Client) -> None:
    text = (REPOSITORY / "LICENSE").read_text()
    ids = httpx.post(f"{client.url}/tokenize", json={"model": SMOL, "content": text}, timeout=None).json()["tokens"]
    context, rest = (
        httpx.post(f"{client.url}/detokenize", json={"model": SMOL, "tokens": part}).json()["content"]
        for part in (ids[:SCORED], ids[SCORED:CTX])
    )
    assert text.startswith(context + rest)
    work = client.home / "work"
    work.mkdir()
    (work / "samples.jsonl").write_text(json.dumps({"context": context, "rest": rest}))
    task = {**TASK, "dataset_kwargs": {"data_files": {"test": str(work / "samples.jsonl")}}}
    (work / "task.yaml").write_text(json.dumps(task))
    arguments = f"model={SMOL},base_url={client.url}/v1/completions,tokenizer_backend=remote,max_retries=1"
    found = ("--include_path", work, "--tasks", "rest", "--output_path", work / "out", "--log_samples")
    ran = client.run("lm_eval", "run", "--model", "local-completions", "--model_args", arguments, *found)
    assert ran.code == 0, ran
    (samples,) = (work / "out").rglob("samples_*.jsonl")
    logprob, _ = json.loads(samples.read_text())["filtered_resps"][0]
    (work / "text.txt").write_text(text)
    whole = localrun("perplexity", SMOL, work / "text.txt", "--ctx", str(CTX), "--chunks", "1", "--json").json
    assert float(logprob) == pytest.approx(-whole["nll"] * whole["tokens"], rel=1e-5)
    assert whole["tokens"] == CTX - SCORED
