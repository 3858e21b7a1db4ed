"""Command lines that start an engine for a plan: vLLM on one machine or several, SGLang on one."""

import shlex

from localrun.fit.handover import GPU_SHARE, Handover
from localrun.fit.serve_parsers import vllm_parsers

PORT = 8000
HEAD = "HEAD"  # address of the first machine, which the others have to reach


def vllm_lines(plan: Handover) -> list[str]:
    """A line for each machine, the first for the one that answers; none where there is no room."""
    if plan.chosen is None:
        return []
    words = ["vllm", "serve", plan.checkpoint.repo]
    words += ["--tensor-parallel-size", str(plan.tensor_parallel)]
    if plan.pipeline_parallel > 1:
        words += ["--pipeline-parallel-size", str(plan.pipeline_parallel)]
    words += ["--max-model-len", str(plan.chosen.ctx), "--gpu-memory-utilization", str(GPU_SHARE)]
    words += ["--kv-cache-dtype", plan.chosen.kv_cache_dtype, "--enable-prompt-tokens-details", "--port", str(PORT)]
    parsers = vllm_parsers(plan.checkpoint.repo)
    words += ["--enable-auto-tool-choice", "--tool-call-parser", parsers.tools] if parsers.tools else []
    words += ["--reasoning-parser", parsers.reasoning] if parsers.reasoning else []
    line, nodes = shlex.join(words), plan.gpus.nodes
    if nodes == 1:
        return [line]
    several = [f"{line} --nnodes {nodes} --node-rank {rank} --master-addr {HEAD}" for rank in range(nodes)]
    return [several[0], *(f"{one} --headless" for one in several[1:])]


def sglang_lines(plan: Handover) -> list[str]:
    """The same for SGLang."""
    if plan.chosen is None:
        return []
    cache = "fp8_e4m3" if plan.chosen.kv_cache_dtype == "fp8" else "auto"
    words = ["python3", "-m", "sglang.launch_server", "--model-path", plan.checkpoint.repo]
    words += ["--tp", str(plan.tensor_parallel), "--pp-size", str(plan.pipeline_parallel)]
    words += ["--context-length", str(plan.chosen.ctx), "--kv-cache-dtype", cache]
    words += ["--enable-metrics", "--enable-cache-report", "--port", str(PORT)]
    line, nodes = shlex.join(words), plan.gpus.nodes
    if nodes == 1:
        return [line]
    return [f"{line} --nnodes {nodes} --node-rank {rank} --dist-init-addr {HEAD}:20000" for rank in range(nodes)]
