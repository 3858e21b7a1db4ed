"""GGUF files of published models' own shapes with random weights, where `synthetic_models` has no row for them.

What transformers builds of a config.json says which tensors there are, and the converter that the tests hold to
llama.cpp's writes them.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import gguf
import torch
import transformers
from localrun_testing.gguf_convert import ARCHS, add_hyperparameters, converted

from benchmarks.published_configs import PUBLISHED
from benchmarks.synthetic_vocabulary import add_vocabulary

Shape: TypeAlias = tuple[int, ...]

GAIN = 2.0  # weights deviate by GAIN / sqrt(columns), so that a model is sure of something
LARGEST = 1 << 29  # numbers; the rows of what has more overlap in memory
OVERLAP = 64
SAVED_AS = {  # what transformers calls otherwise once it is loaded
    "block_sparse_moe.router.weight": "block_sparse_moe.router.layer.weight",
    "block_sparse_moe.experts.gate_up_proj": "block_sparse_moe.input_linear.weight",
    "block_sparse_moe.experts.down_proj": "block_sparse_moe.output_linear.weight",
}


def write_published(path: Path, name: str) -> None:
    """A published shape with matrices in f16, a tensor at a time: all of them may be larger than memory."""
    write_config(path, dict(PUBLISHED[name]))


def write_config(path: Path, values: dict[str, Any]) -> None:
    """Likewise for what a config.json would say."""
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    config.allow_global_per_layer_attribute_access = True  # of Gemma 4: those of windowed layers
    arch = ARCHS[config.model_type]
    writer = gguf.GGUFWriter(path, arch)
    add_hyperparameters(writer, arch, config)
    add_vocabulary(writer, config.vocab_size)
    for tensor, data, encoding in converted(checkpoint(config, nothing), arch, config, "F16"):
        writer.add_tensor_info(tensor, data.shape, data.dtype, data.nbytes, encoding)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for _, data, _ in converted(checkpoint(config, Weights()), arch, config, "F16"):
        writer.write_tensor_data(data)
    writer.close()


def checkpoint(config: Any, values: Callable[[str, Shape], torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a checkpoint of this config has, one by one."""
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        for loaded, saved in SAVED_AS.items():
            name = name.replace(loaded, saved)
        yield name, values(name, tuple(weight.shape))


def nothing(name: str, shape: Shape) -> torch.Tensor:
    return torch.zeros(1).expand(shape)


class Weights:
    """Matrices, biases and sinks at random; norms and other factors are one, and states fade slowly."""

    def __init__(self) -> None:
        self.chance = torch.Generator().manual_seed(0)

    def __call__(self, name: str, shape: Shape) -> torch.Tensor:
        if name.endswith("A_log"):
            return torch.full(shape, -2.0)
        if len(shape) == 1 or name.endswith("bias"):
            chosen = name.endswith(("bias", "sinks")) and not name.endswith("dt_bias")
            return 0.1 * self.random(shape) if chosen else torch.ones(shape)
        scale = GAIN * fan_in(name, shape) ** -0.5
        if math.prod(shape) <= LARGEST:
            return self.random(shape).mul_(scale)
        pool = self.random((shape[0] * OVERLAP + shape[1],)).mul_(scale)
        return pool.as_strided(shape, (OVERLAP, 1))

    def random(self, shape: Shape) -> torch.Tensor:
        return torch.randn(shape, generator=self.chance)


def fan_in(name: str, shape: Shape) -> int:
    """How many numbers a row multiplies; gpt-oss has its experts transposed."""
    return shape[1] if name.endswith(("experts.gate_up_proj", "experts.down_proj")) else shape[-1]
