"""GGUF files of the tests' tiny recipes, with room for a long chat: every kind of layer, at the cost of a toy.

Beside pytest they want transformers, by which the tests make their checkpoints.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

TINY = (  # of `TINY_MODELS`, those that differ in what their layers do
    "llama",
    "mistral-small-3",
    "ministral-3",
    "qwen2",
    "qwen3",
    "qwen3-vl",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma4",
    "gemma4-e2b",
    "gemma4-moe",
    "gemma4-unified",
    "phi3-longrope",
    "olmo2",
    "olmo3",
    "granite",
    "granite-moe-shared",
    "granite-hybrid",
    "granite-hybrid-moe",
    "nemotron-h",
    "nemotron-h-moe",
    "smollm3",
    "muse-glimmer",
    "deepseek-v2-lite",
    "glm-4.7-flash",
    "qwen2-moe",
    "qwen3-moe",
    "qwen3-vl-moe",
    "qwen3.5",
    "qwen3.5-moe",
    "qwen3-next",
    "mixtral",
    "lfm2",
    "lfm2-moe",
    "gpt-oss",
)
CONTEXT, WINDOW = 4096, 100
TEMPLATE = """{%- for m in messages -%}
{{ '<|298|>' + m.role + '\\n' + m.content + '<|299|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|298|>assistant\\n' }}{%- endif -%}"""


def tiny_file(name: str, path: Path) -> Path:
    """The recipe `name` with matrices in f16, windows that a chat outgrows, and a chat template."""
    from localrun_testing.gguf_convert import prepare, write
    from localrun_testing.tiny_models import save

    with TemporaryDirectory() as folder:
        config = save(name, Path(folder)) / "config.json"
        values = json.loads(config.read_text())
        text = values.get("text_config", values)
        text["max_position_embeddings"] = CONTEXT
        if text.get("sliding_window"):
            text["sliding_window"] = WINDOW
        config.write_text(json.dumps(values))
        writer = prepare(Path(folder), path, "F16")
        writer.add_chat_template(TEMPLATE)
        write(writer)
    return path
