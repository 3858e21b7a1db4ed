"""Names by which vLLM knows how a family of models writes tool calls and thoughts (its registries, 0.32)."""

import re
from typing import NamedTuple


class Parsers(NamedTuple):
    """Parsers of vLLM; "" for none."""

    tools: str = ""
    reasoning: str = ""


FAMILIES = (  # by the name of a repository in small letters; the first that is found counts
    (r"qwen3-coder", Parsers("qwen3_coder")),
    (r"qwen3\.\d", Parsers("qwen3_coder", "qwen3")),
    (r"qwen3.*(instruct-2507|next.*instruct)", Parsers("hermes")),
    (r"qwen3", Parsers("hermes", "qwen3")),
    (r"qwq", Parsers("hermes", "deepseek_r1")),
    (r"qwen2\.5|hermes-[23]", Parsers("hermes")),
    (r"gpt-oss", Parsers("openai", "openai_gptoss")),
    (r"gemma-4", Parsers("gemma4", "gemma4")),
    (r"r1-distill", Parsers("", "deepseek_r1")),
    (r"deepseek-r1", Parsers("deepseek_v3", "deepseek_r1")),
    (r"deepseek-v3\.2", Parsers("deepseek_v32", "deepseek_v3")),
    (r"deepseek-v3\.1", Parsers("deepseek_v31", "deepseek_v3")),
    (r"deepseek-v3", Parsers("deepseek_v3")),
    (r"llama-4", Parsers("llama4_pythonic")),
    (r"llama-3\.[123]", Parsers("llama3_json")),
    (r"magistral|ministral.*reasoning", Parsers("mistral", "mistral")),
    (r"mistral|ministral|devstral|mixtral", Parsers("mistral")),
    (r"glm-4\.[56]", Parsers("glm45", "glm45")),
    (r"glm-(4\.7|5)", Parsers("glm47", "glm47")),
    (r"kimi-k2", Parsers("kimi_k2", "kimi_k2")),
    (r"minimax-m2", Parsers("minimax_m2", "minimax_m2")),
    (r"granite-4", Parsers("granite4")),
    (r"granite-3", Parsers("granite", "granite")),
    (r"phi-4-mini", Parsers("phi4_mini_json")),
    (r"olmo-3", Parsers("olmo3", "olmo3")),
    (r"seed-oss", Parsers("seed_oss", "seed_oss")),
    (r"lfm2", Parsers("lfm2")),
    (r"apertus", Parsers("apertus")),
    (r"hunyuan-a13b", Parsers("hunyuan_a13b", "hunyuan_a13b")),
)


def vllm_parsers(repo: str) -> Parsers:
    """The parsers for a checkpoint by the name of its repository; none for a family that is not known."""
    name = repo.rpartition("/")[2].lower()
    return next((parsers for family, parsers in FAMILIES if re.search(family, name)), Parsers())
