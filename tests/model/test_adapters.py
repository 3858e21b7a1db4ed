"""Adapters beside the weights of a model: by PEFT itself, and by models that they are merged into."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch
from localrun_testing.adapters import (
    SCALE,
    WRITERS,
    Pair,
    gguf_with_adapter,
    merged_folder,
    pairs_of_folder,
    write_peft,
)
from localrun_testing.format_libraries import make_samples
from localrun_testing.instruction_sets import all_here, using
from localrun_testing.oracle import difference, token_ids
from localrun_testing.stepper import Stepper, random_chunks
from localrun_testing.tiny_models import VOCAB_SIZE
from safetensors.torch import load_file

from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.scratch import arena_of, span_bytes
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.interface import Backend
from localrun.backends.metal.backend import MetalBackend
from localrun.backends.reference.rows import RowReferenceOps
from localrun.base.errors import ModelFileError
from localrun.formats.adapters.detect import open_adapter
from localrun.formats.safetensors import open_safetensors
from localrun.model.adapters import match
from localrun.model.archs import arch_of
from localrun.model.headers import read_config
from localrun.model.recording import record_shapes
from localrun.model.weight_sizes import allocated_bytes
from localrun.ops.layouts import F32

TinyFile = Callable[..., Path]
SAMPLES = Path(__file__).parent / "adapter_samples"
IDS = token_ids(70, VOCAB_SIZE)
# Biases, experts beside attention, fused matrices, mixers of three kinds, gates in turns with queries, per-layer ones,
# layers beside eyes.
KINDS = (
    "llama-biases", "phi3", "qwen3-moe", "gpt-oss", "granite-hybrid", "nemotron-h", "qwen3.5", "qwen3-next", "lfm2",
    "gemma2", "gemma4-e2b", "smolvlm",
)  # fmt: skip


@pytest.mark.parametrize("native_threads", [0, 2])
@pytest.mark.parametrize("name", ["usual", "all-linear", "rslora", "patterns"])
def test_logits_are_those_of_peft(name: str, native_threads: int) -> None:
    expected = load_file(SAMPLES / f"{name}.expected.safetensors")
    stepper = Stepper(SAMPLES / "model", layout=F32, native_threads=native_threads, adapters=[(SAMPLES / name, 1.0)])
    found = difference(stepper.logits(expected["ids"].tolist()), expected["logits"])
    if native_threads:
        assert found.nmse < 1e-4, "whose activations are rounded"
    else:
        assert found.within(max_abs=1e-4, nmse=1e-9)


@pytest.mark.slow
def test_logits_are_those_of_peft_as_it_is_here(tmp_path: Path) -> None:
    made = make_samples("write_adapter_samples.py", tmp_path / "samples")
    names = [path.name.removesuffix(".expected.safetensors") for path in made.glob("*.expected.safetensors")]
    assert len(names) == 4
    for name in names:
        expected = load_file(made / f"{name}.expected.safetensors")
        stepper = Stepper(made / "model", layout=F32, adapters=[(made / name, 1.0)])
        found = difference(stepper.logits(expected["ids"].tolist()), expected["logits"])
        assert found.within(max_abs=1e-4, nmse=1e-9), name


@pytest.mark.parametrize(("kind", "native_threads"), [*product(KINDS, [0, 2])])
def test_a_checkpoint_with_an_adapter_is_the_merged_one(
    kind: str, native_threads: int, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    folder = tiny_folder(kind)
    pairs = pairs_of_folder(folder)
    merged = Stepper(merged_folder(folder, tmp_path / "merged", pairs), native_threads=native_threads)
    adapter = WRITERS["mlx" if native_threads else "peft"](tmp_path / "adapter", pairs)
    adapted = Stepper(folder, native_threads=native_threads, adapters=[(adapter, 1.0)])
    found, wanted = adapted.logits(IDS), merged.logits(IDS)
    assert difference(found, wanted).within(max_abs=2e-2 if native_threads else 1e-4, nmse=1e-6)
    assert not difference(Stepper(folder).logits(IDS), wanted).within(max_abs=0.05, nmse=1e-3)
    if native_threads:
        assert torch.equal(adapted.logits(IDS, random_chunks(70, seed=0)), found)


@pytest.mark.parametrize("kind", ["llama", "phi3", "granite-hybrid", "qwen3.5"])
def test_a_gguf_with_an_adapter_is_the_merged_one(kind: str, tiny_folder: TinyFile, tmp_path: Path) -> None:
    base, adapter, merged = gguf_with_adapter(tiny_folder(kind), tmp_path)
    found = Stepper(base, adapters=[(adapter, 1.0)]).logits(IDS)
    assert difference(found, Stepper(merged).logits(IDS)).within(max_abs=1e-4, nmse=1e-9)


def test_an_adapter_of_a_checkpoint_fits_its_gguf(tiny_folder: TinyFile, tiny_gguf: TinyFile, tmp_path: Path) -> None:
    folder = tiny_folder("llama")
    pairs = pairs_of_folder(folder)
    merged = Stepper(merged_folder(folder, tmp_path / "merged", pairs))
    adapted = Stepper(tiny_gguf("llama"), adapters=[(write_peft(tmp_path / "adapter", pairs), 1.0)])
    assert difference(adapted.logits(IDS), merged.logits(IDS)).within(max_abs=1e-4, nmse=1e-9)


@pytest.mark.parametrize("native_threads", [0, 2])
def test_several_adapters_add_up_each_by_its_scale(native_threads: int, tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder = tiny_folder("llama")
    pairs = [pairs_of_folder(folder, seed=seed, rank=rank) for seed, rank in ((1, 2), (2, 5), (3, 3))]
    merged, given = folder, []
    for number, (one, scale) in enumerate(zip(pairs, (0.5, -2.0, 0.0), strict=True)):
        merged = merged_folder(merged, tmp_path / f"merged-{number}", one, SCALE * scale)
        given.append((write_peft(tmp_path / f"adapter-{number}", one), scale))
    adapted = Stepper(folder, native_threads=native_threads, adapters=given)
    found = difference(adapted.logits(IDS), Stepper(merged, native_threads=native_threads).logits(IDS))
    assert found.within(max_abs=2e-2 if native_threads else 1e-4, nmse=1e-6)


@pytest.mark.parametrize("isa", all_here() or ("generic",))
def test_every_instruction_set_adds_them(isa: str) -> None:
    expected = load_file(SAMPLES / "all-linear.expected.safetensors")
    ids = expected["ids"].tolist()
    with using(isa):
        given = [(SAMPLES / "all-linear", 1.0)]
        stepper = Stepper(SAMPLES / "model", native_threads=2, adapters=given)
        found = stepper.logits(ids)
        assert difference(found, expected["logits"]).nmse < 1e-4
        assert torch.equal(stepper.logits(ids, [1, 7, 16]), found)


def test_one_row_at_a_time_gives_the_same_bits(tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder = tiny_folder("llama")
    adapter = write_peft(tmp_path / "adapter", pairs_of_folder(folder))
    stepper = Stepper(folder, ops=RowReferenceOps, adapters=[(adapter, 1.0)])
    assert torch.equal(stepper.logits(IDS, [1] * 20 + [50]), stepper.logits(IDS))


@pytest.mark.parametrize(
    ("kind", "shapes", "told"),
    [
        ("llama", {"model.layers.0.self_attn.q_proj.weight": (96, 96)}, "192 × 96"),
        ("llama", {"model.layers.3.self_attn.q_proj.weight": (192, 96)}, "does not have"),
        ("llama", {"model.layers.0.mlp.fc1.weight": (96, 96)}, "does not have"),
        ("qwen3-moe", {"model.layers.0.mlp.experts.0.gate_proj.weight": (48, 96)}, "experts"),
        ("qwen3-moe", {"model.layers.0.mlp.gate.weight": (6, 96)}, "experts"),
        ("qwen3.5-moe", {"model.layers.0.mlp.shared_expert.up_proj.weight": (80, 96)}, "experts"),
    ],
)
def test_an_adapter_of_what_is_not_there_is_refused(
    kind: str, shapes: dict[str, tuple[int, ...]], told: str, tiny_folder: TinyFile, tmp_path: Path
) -> None:
    pairs = {name: Pair(torch.ones(2, n_in), torch.ones(n_out, 2)) for name, (n_out, n_in) in shapes.items()}
    with pytest.raises(ModelFileError, match=told):
        Stepper(tiny_folder(kind), adapters=[(write_peft(tmp_path / "adapter", pairs), 1.0)])


def test_an_adapter_of_another_architecture_is_refused(tiny_folder: TinyFile, tmp_path: Path) -> None:
    base, adapter, _ = gguf_with_adapter(tiny_folder("qwen3"), tmp_path)
    assert Stepper(base, adapters=[(adapter, 1.0)]).logits(IDS).isfinite().all()
    with pytest.raises(ModelFileError, match="adapter for qwen3, and the model is llama"):
        Stepper(tiny_folder("llama"), adapters=[(adapter, 1.0)])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_beyond_all_scales_are_refused(tiny_folder: TinyFile, tmp_path: Path) -> None:
    folder = tiny_folder("llama")
    pairs = {name: Pair(1e25 * pair.a, 1e25 * pair.b) for name, pair in pairs_of_folder(folder).items()}
    with pytest.raises(ModelFileError, match="too large"):
        Stepper(folder, native_threads=2, adapters=[(write_peft(tmp_path / "adapter", pairs), 1.0)])


@pytest.mark.parametrize("native_threads", [0, 2])
def test_memory_of_adapters_is_counted(native_threads: int, tiny_folder: TinyFile, tmp_path: Path) -> None:
    """Of the matrices, and of what a step holds between the two of a weight."""
    folder = tiny_folder("llama")
    adapter = write_peft(tmp_path / "adapter", pairs_of_folder(folder, rank=5))
    source = open_safetensors(folder)
    opened = match(open_adapter(adapter), 1.0, arch_of(source), read_config(source))
    plain, adapted = (
        Stepper(folder, native_threads=native_threads, adapters=given) for given in ((), ((adapter, 1.0),))
    )
    layout = adapted.model.weights.embed.packed.layout
    grown = allocated_bytes(adapted.model.weights) - allocated_bytes(plain.model.weights)
    assert grown == opened.nbytes(layout) > 0
    if native_threads:
        counted = [arena_of(record_shapes(plain.config, ranks)).row_bytes for ranks in ((), (opened.ranks,))]
        arenas = [one.runner.executor for one in (plain, adapted)]
        reserved = [sum(n for _, n in arena.reserved) for arena in arenas if isinstance(arena, CpuExecutor)]
        shared = 3 * span_bytes(5, plain.config.hidden_size)  # between phases: of q, k and v
        assert reserved[1] - reserved[0] == (counted[1] - counted[0] - shared) * 256, "rows of the largest step"


@pytest.mark.parametrize("backend", [CudaBackend(), MetalBackend()], ids=lambda backend: backend.name)
def test_gpus_refuse_adapters(backend: Backend, tiny_folder: TinyFile) -> None:
    config = read_config(open_safetensors(tiny_folder("llama")))
    assert "adapters" in backend.why_not(record_shapes(config, ((("layers.0.q", 4),),)), ())
    assert backend.why_not(record_shapes(config), ()) == ""
