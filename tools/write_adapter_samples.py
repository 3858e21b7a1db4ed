"""Samples of adapters made by PEFT, with the logits of transformers and PEFT beside them: a few KiB each.

    make libraries   (which puts them into .venv-libraries)
    .venv-libraries/bin/python tools/write_adapter_samples.py [FOLDER]

tests/model/adapter_samples holds a tiny random model, adapters for it as PEFT saves them, and `logits` of the tokens
`ids` with each of them. `make test` reads the files, and needs no PEFT; `make test-slow` makes them once more.
"""

import sys
from pathlib import Path
from typing import Any

import peft as _peft
import torch
import transformers as _transformers
from safetensors.torch import save_file

transformers: Any = _transformers  # their annotations are partial
peft: Any = _peft
FOLDER = Path(__file__).parent.parent / "tests" / "model" / "adapter_samples"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
NETWORK = ["gate_proj", "up_proj", "down_proj"]
ADAPTERS: dict[str, dict[str, Any]] = {
    "usual": {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
    "all-linear": {"r": 2, "lora_alpha": 3, "target_modules": [*ATTENTION, *NETWORK]},
    "rslora": {"r": 4, "lora_alpha": 5, "use_rslora": True, "target_modules": NETWORK},
    "patterns": {
        "r": 4,
        "lora_alpha": 8,
        "target_modules": [*ATTENTION, "down_proj"],
        "rank_pattern": {"o_proj": 2, r"layers\.1\.mlp\.down_proj": 3, "^model.layers.0.self_attn.q_proj": 1},
        "alpha_pattern": {"v_proj": 1, "layers.[0-9].self_attn.k_proj": 6},
    },
}


def main(folder: Path) -> None:
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=40,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    for values in model.parameters():
        values.data = (values + 0.1 * torch.randn_like(values)).bfloat16().float()
    model.to(torch.bfloat16).save_pretrained(folder / "model")
    (folder / "model" / "generation_config.json").unlink()
    ids = torch.randint(0, config.vocab_size, (1, 24))
    for name, settings in ADAPTERS.items():
        base = transformers.LlamaForCausalLM.from_pretrained(folder / "model", dtype=torch.float32).eval()
        adapted = peft.get_peft_model(base, peft.LoraConfig(**settings)).eval()
        for key, values in adapted.named_parameters():
            if "lora_B" in key:
                values.data = 0.2 * torch.randn_like(values)
        adapted.peft_config["default"].base_model_name_or_path = "tiny"
        adapted.save_pretrained(folder / name)
        (folder / name / "README.md").unlink()
        with torch.no_grad():
            logits = adapted(ids).logits[0]
        save_file({"ids": ids[0], "logits": logits}, folder / f"{name}.expected.safetensors")
    for file in folder.rglob("*.*"):
        file.chmod(0o644)
    print(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()), "bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
