"""Encoding of an image by the tower of Qwen3.5 (27 layers of 1152), beside llama.cpp's mtmd on the same projector.

    python benchmarks/images_beside.py LLAMA_SERVER [--threads 2] [--rows 256 1024] [--types F16 Q8_0] [--rounds 5]

The weights are random, the language model behind is tiny. llama.cpp's time is that of the prompt in its server, whose
text takes next to none, with flash attention on and off; the better counts. Rounds alternate; the ratio is the median
of theirs / ours by round.
"""

import argparse
import base64
import statistics
import sys
import tempfile
import time
from functools import partial
from io import BytesIO
from pathlib import Path
from subprocess import DEVNULL, Popen

import httpx
import numpy as np
import torch
from PIL import Image

from localrun.backends.cpu.backend import CpuBackend
from localrun.formats.gguf import open_gguf
from localrun.model.vision.projector import TowerProjector
from localrun.model.vision.read_config import tower_config
from localrun.model.vision.weights import load_tower
from localrun.ops.interface import CancelFlag

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from localrun_testing.gguf_convert import convert
from localrun_testing.projector_gguf import write_projector
from localrun_testing.tiny_models import save

TEXT_SIZE = 96  # of the tiny language model
SHAPE = {
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_heads": 16,
    "patch_size": 16,
    "num_position_embeddings": 2304,
    "out_hidden_size": TEXT_SIZE,
    "spatial_merge_size": 2,
}
PORT = 18_437


def random_state() -> dict[str, torch.Tensor]:
    """Weights of a whole tower, of the size that training leaves."""
    random, hidden, ffn, merged = np.random.default_rng(0), 1152, 4304, 4608

    def linear(name: str, n_out: int, n_in: int) -> dict[str, torch.Tensor]:
        matrix = random.standard_normal((n_out, n_in), np.float32) * n_in**-0.5
        return {f"{name}.weight": torch.from_numpy(matrix), f"{name}.bias": torch.zeros(n_out)}

    def norm(name: str) -> dict[str, torch.Tensor]:
        return {f"{name}.weight": torch.ones(hidden), f"{name}.bias": torch.zeros(hidden)}

    state = linear("patch_embed.proj", hidden, 3 * 2 * 256)
    state["patch_embed.proj.weight"] = state["patch_embed.proj.weight"].reshape(hidden, 3, 2, 16, 16)
    state["pos_embed.weight"] = torch.from_numpy(random.standard_normal((2304, hidden), np.float32))
    for layer in range(27):
        block = f"blocks.{layer}"
        state |= norm(f"{block}.norm1") | norm(f"{block}.norm2")
        state |= linear(f"{block}.attn.qkv", 3 * hidden, hidden) | linear(f"{block}.attn.proj", hidden, hidden)
        state |= linear(f"{block}.mlp.linear_fc1", ffn, hidden) | linear(f"{block}.mlp.linear_fc2", hidden, ffn)
    state |= norm("merger.norm") | linear("merger.linear_fc1", merged, merged)
    return state | linear("merger.linear_fc2", TEXT_SIZE, merged)


def picture(rows: int) -> bytes:
    """A PNG of a square image that becomes so many rows; never the same again."""
    side = round(rows**0.5) * 32
    drawn = np.random.default_rng(time.time_ns()).integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(drawn).resize((side, side)).save(file, "PNG")
    return file.getvalue()


class Ours:
    """A tower on the native library."""

    def __init__(self, projector: Path, threads: int) -> None:
        source, backend = open_gguf(projector), CpuBackend()
        layout = backend.layout(0, 0, threads)
        tower = load_tower(source, tower_config(source), layout)
        self.projector = TowerProjector(tower, partial(backend.encoder, layout), "benchmark", 0)

    def seconds(self, rows: int) -> float:
        side = round(rows**0.5) * 32
        plan, data = self.projector.plan(side, side, rows), picture(rows)
        began = time.perf_counter()
        self.projector.encode(data, plan, lambda share: None, CancelFlag())
        return time.perf_counter() - began


class Theirs:
    """A server of llama.cpp. Each image it is shown is new to it."""

    def __init__(self, program: str, model: Path, projector: Path, threads: int, flash: str, port: int) -> None:
        self.log = projector.with_name(f"server-{port}.log")
        self.address = f"http://127.0.0.1:{port}"
        words = (program, "-m", model, "--mmproj", projector, "-t", threads, "-tb", threads, "-fa", flash, "-c", 8192)
        more = ("-np", 1, "--port", port, "--jinja", "--no-ui", "--image-max-tokens", 4096, "--no-warmup")
        with self.log.open("w") as log:
            self.process = Popen([*map(str, (*words, *more))], stdout=log, stderr=log, stdin=DEVNULL)
        while self.process.poll() is None:
            try:
                if httpx.get(f"{self.address}/health").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        raise SystemExit(f"llama-server does not start: {self.log.read_text()[-2000:]}")

    def seconds(self, rows: int) -> float:
        data = base64.b64encode(picture(rows)).decode()
        content = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
            {"type": "text", "text": str(time.time())},
        ]
        request = {"messages": [{"role": "user", "content": content}], "max_tokens": 1, "cache_prompt": False}
        answer = httpx.post(f"{self.address}/v1/chat/completions", json=request, timeout=600).raise_for_status().json()
        return float(answer["timings"]["prompt_ms"]) / 1000

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--types", nargs="+", default=["F16", "Q8_0"])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = convert(save("qwen3.5", folder), folder / "text.gguf")
        for qtype in options.types:
            projector = write_projector(folder / f"mmproj-{qtype}.gguf", random_state(), SHAPE, qtype=qtype)
            compare(options, model, projector, qtype)


def compare(options: argparse.Namespace, model: Path, projector: Path, qtype: str) -> None:
    ours = Ours(projector, options.threads)
    theirs = {
        flash: Theirs(options.server, model, projector, options.threads, flash, PORT + number)
        for number, flash in enumerate(("on", "off"))
    }
    try:
        for rows in options.rows:
            engines: tuple[Ours | Theirs, ...] = (ours, *theirs.values())
            rounds = [[engine.seconds(rows) for engine in engines] for _ in range(options.rounds)]
            own, *others = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratio = statistics.median(min(others_of) / own_of for own_of, *others_of in rounds)
            told = ", ".join(f"flash {flash} {seconds:.2f} s" for flash, seconds in zip(theirs, others, strict=True))
            print(f"{qtype} {rows:5} rows: ours {own:.2f} s, theirs {told}: {ratio:.2f} ×", flush=True)
    finally:
        for one in theirs.values():
            one.close()


if __name__ == "__main__":
    main()
