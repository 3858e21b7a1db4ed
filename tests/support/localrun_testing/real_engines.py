"""Real engines of the OpenAI protocol, on loopback where they are installed, each with a tiny model.

`LOCALRUN_PEERS` names the folder that `llama-server` is in or below; `LOCALRUN_TRANSFORMERS`, `LOCALRUN_VLLM` and
`LOCALRUN_MLX_LM` are the programs `transformers`, `vllm` and `mlx_lm.server`, each of an environment of its own, and
`LOCALRUN_LLAMA_CPP_SERVER` one that runs `python -m llama_cpp.server`.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import torch

from localrun.base.resources import resource
from localrun_testing.cli import COMMAND, environment

ENGINES = ("llama.cpp", "llama_cpp.server", "vLLM", "transformers", "mlx_lm", "localrun")
START_SECONDS = 600.0  # vLLM on a busy machine
BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|a|>' if m['role'] == 'assistant' else '<|u|>' }}{{ m['content'] }}"
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|a|>{% endif %}"
)


@dataclass(frozen=True, slots=True)
class RealEngine:
    """An engine that runs: its address, the name of its model, and the process that leads its group."""

    name: str
    url: str
    model: str
    pid: int

    def kill(self) -> None:
        """End it, and what it has started, as if the machine had failed."""
        os.killpg(self.pid, signal.SIGKILL)


@contextmanager
def running(name: str, folder: Path) -> Iterator[RealEngine | None]:
    """The engine, until the block is left; None where it is not installed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command, model, page = _command(name, folder, port)
    if command is None:
        yield None
        return
    offline = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    (folder / "hf/hub").mkdir(parents=True)
    home = {"LOCALRUN_HOME": str(folder / "serving"), "HF_HOME": str(folder / "hf"), "PYTHONPATH": None}
    variables = (
        environment(**offline, **home) if name != "localrun" else environment(LOCALRUN_HOME=home["LOCALRUN_HOME"])
    )
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=variables, start_new_session=True)
        try:
            _wait(f"http://127.0.0.1:{port}{page}", process)
            yield RealEngine(name, f"http://127.0.0.1:{port}/v1", model, process.pid)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            with suppress(ProcessLookupError):  # and what it has left
                os.killpg(process.pid, signal.SIGKILL)


def llama_server_program() -> str | None:
    """Path of llama.cpp's server; None where LOCALRUN_PEERS has none."""
    peers = Path(os.environ.get("LOCALRUN_PEERS", ""))
    return shutil.which("llama-server", path=f"{peers}{os.pathsep}{peers / 'bin'}") if peers.parts else None


def _command(name: str, folder: Path, port: int) -> tuple[list[str] | None, str, str]:
    """The command that starts it, the name of its model, and a page that is there when it is ready."""
    at = ["--host", "127.0.0.1", "--port", str(port)]
    if name == "localrun":
        return [*COMMAND, "serve", "builtin", "--port", str(port)], "builtin", "/health"
    if name == "llama.cpp":
        found = llama_server_program()
        options = ["-m", str(BUILTIN), *at, "-c", "1024", "-np", "1", "--jinja", "--alias", "tiny", "--metrics"]
        return [found, *options] if found else None, "tiny", "/health"
    program = os.environ.get(f"LOCALRUN_{name.upper().replace('.', '_')}")
    if not program:
        return None, "", ""
    if name == "llama_cpp.server":
        options = ["--model", str(BUILTIN), *at, "--n_ctx", "1024", "--model_alias", "tiny"]
        return [program, *options], "tiny", "/v1/models"
    checkpoint = str(tiny_checkpoint(folder / "tiny"))
    if name == "transformers":
        return [program, "serve", checkpoint, *at, "--device", "cpu"], checkpoint, "/health"
    if name == "mlx_lm":
        return [program, "--model", checkpoint, *at], checkpoint, "/health"
    options = ["--served-model-name", "tiny", *at, "--max-model-len", "1024", "--max-num-seqs", "4"]
    options += ["--enforce-eager", "--dtype", "float32", "--enable-prompt-tokens-details"]
    return [program, "serve", checkpoint, *options], "tiny", "/health"


def tiny_checkpoint(folder: Path) -> Path:
    """A Llama of random weights with a tokenizer of its own, for engines that load checkpoints."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|b|>", "<|e|>", "<|u|>", "<|a|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=512, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(["Hello, how are you? The river is wide, and the night is long."] * 9, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|b|>", eos_token="<|e|>", pad_token="<|e|>", chat_template=TEMPLATE
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,  # the smallest that vLLM computes on a CPU
        vocab_size=512,
        max_position_embeddings=1024,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    latest = time.monotonic() + START_SECONDS
    while time.monotonic() < latest:
        assert process.poll() is None, "the engine ended"
        with suppress(URLError, OSError), urlopen(url, timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise AssertionError("the engine does not answer")
