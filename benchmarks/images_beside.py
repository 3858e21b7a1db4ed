"""Encoding of an image by towers of their real size (Qwen3.5: 27 layers of 1152; Gemma 4 E2B: 16 of 768), beside
llama.cpp's mtmd on the same projector.

    python -m benchmarks.images_beside LLAMA_SERVER [--towers qwen3.5 gemma4-e2b] [--threads 2] [--types F16 Q8_0]

The weights are random, the language model behind is tiny. llama.cpp's time is that of the prompt in its server, whose
text takes next to none, with flash attention on and off; the better counts. Rounds alternate; the ratio is the median
of theirs / ours by round.
"""

import argparse
import base64
import statistics
import tempfile
import time
from io import BytesIO
from pathlib import Path
from subprocess import DEVNULL, Popen

import httpx
import numpy as np
from PIL import Image

from benchmarks.random_towers import TOWERS, RandomTower
from localrun.backends.cpu.backend import CpuBackend
from localrun.engine.tower import first_fitting
from localrun.formats.gguf import open_gguf
from localrun.ops.interface import CancelFlag

PORT = 18_437


def picture(side: int) -> bytes:
    """A PNG of a square image of `side` pixels; never the same again."""
    drawn = np.random.default_rng(time.time_ns()).integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(drawn).resize((side, side)).save(file, "PNG")
    return file.getvalue()


class Ours:
    """A tower on the native library."""

    def __init__(self, projector: Path, out_size: int, threads: int) -> None:
        backend = CpuBackend()
        tower, why = first_fitting([open_gguf(projector)], out_size)
        assert tower is not None, why
        self.projector = tower.projector(backend, backend.layout(0, 0, threads))

    def seconds(self, side: int) -> float:
        plan, data = self.projector.plan(side, side, 4096), picture(side)
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

    def seconds(self, side: int) -> float:
        data = base64.b64encode(picture(side)).decode()
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
    parser.add_argument("--towers", nargs="+", choices=TOWERS, default=[*TOWERS])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--types", nargs="+", default=["F16", "Q8_0"])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name in options.towers:
        with tempfile.TemporaryDirectory() as folder:
            model = TOWERS[name].text(Path(folder))
            for qtype in options.types:
                projector = TOWERS[name].projector(Path(folder, f"mmproj-{qtype}.gguf"), qtype)
                compare(options, TOWERS[name], model, projector, f"{name} {qtype}")


def compare(options: argparse.Namespace, tower: RandomTower, model: Path, projector: Path, title: str) -> None:
    ours = Ours(projector, tower.out_size, options.threads)
    theirs = {
        flash: Theirs(options.server, model, projector, options.threads, flash, PORT + number)
        for number, flash in enumerate(("on", "off"))
    }
    engines: tuple[Ours | Theirs, ...] = (ours, *theirs.values())
    try:
        for rows in tower.rows:
            side = round(rows**0.5) * tower.side
            for engine in engines:
                engine.seconds(side)  # the weights of ours are read with the first image
            rounds = [[engine.seconds(side) for engine in engines] for _ in range(options.rounds)]
            own, *others = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratio = statistics.median(min(others_of) / own_of for own_of, *others_of in rounds)
            told = ", ".join(f"flash {flash} {seconds:.2f} s" for flash, seconds in zip(theirs, others, strict=True))
            print(f"{title} {rows:5} rows: ours {own:.2f} s, theirs {told}: {ratio:.2f} ×", flush=True)
    finally:
        for one in theirs.values():
            one.close()


if __name__ == "__main__":
    main()
