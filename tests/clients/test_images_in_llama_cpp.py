"""llama.cpp's server sees the same in the same files: a text model and its projector."""

import base64
from pathlib import Path

import httpx
import numpy as np
import pytest
from localrun_testing.real_engines import llama_server_program
from localrun_testing.seeing_gemma import AS_LLAMA_CPP, save_seeing_gemma, save_seeing_gemma_gguf
from localrun_testing.seeing_models import save_seeing, save_seeing_gguf, with_usual_sizes
from PIL import Image

from benchmarks.llama_server import llama_server
from localrun.client.llm import LLM

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program() -> str:
    found = llama_server_program()
    if found is None:
        pytest.skip("no llama-server: LOCALRUN_PEERS names no folder that has it")
    return found


@pytest.mark.parametrize("name", ["qwen3.5", "qwen3-vl"])
def test_an_answer_about_an_image_is_that_of_llama_cpp(name: str, program: str, tmp_path: Path) -> None:
    """As many tokens of the prompt, and the same words."""
    checkpoint = with_usual_sizes(save_seeing(name, tmp_path / "small"), tmp_path / "checkpoint")
    (tmp_path / "files").mkdir()
    model = save_seeing_gguf(name, checkpoint, tmp_path / "files")
    compare(program, model, picture(tmp_path / "a.png", 256), 1024, 2048)


@pytest.mark.parametrize("name", AS_LLAMA_CPP)
def test_an_answer_of_gemma_about_an_image_is_that_of_llama_cpp(name: str, program: str, tmp_path: Path) -> None:
    """An image that neither scales: llama.cpp leaves the size of small ones, and does not fill the budget."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "files").mkdir()
    model = save_seeing_gemma_gguf(name, save_seeing_gemma(name, tmp_path / "checkpoint"), tmp_path / "files")
    compare(program, model, picture(tmp_path / "a.png", 192), 256, 512)


def picture(path: Path, side: int) -> Path:
    drawn = np.random.default_rng(7).integers(0, 256, (side, side, 3), dtype=np.uint8)
    Image.fromarray(drawn).save(path, "PNG")
    return path


def compare(program: str, model: Path, image: Path, n_rows: int, ctx: int) -> None:
    """Both are asked about the image, which takes `n_rows` tokens."""
    with LLM(model, ctx=ctx) as llm:
        ours = llm.generate("what?", images=[image], temperature=0, max_tokens=12)
    url = f"data:image/png;base64,{base64.b64encode(image.read_bytes()).decode()}"
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "what?"}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 12, "temperature": 0}
    more = ("--mmproj", str(model.with_name("mmproj-model.gguf")), "--image-max-tokens", "4096", "-fa", "off")
    with llama_server(program, str(model), 1, 1, ctx, more) as address:
        theirs = httpx.post(f"{address}/v1/chat/completions", json=body, timeout=300).raise_for_status().json()
    assert theirs["usage"]["prompt_tokens"] == ours.prompt_tokens
    assert ours.seen.image_tokens == n_rows
    said = theirs["choices"][0]["message"]["content"]
    assert said
    assert ours.text.startswith(said), "their last character may be cut"
