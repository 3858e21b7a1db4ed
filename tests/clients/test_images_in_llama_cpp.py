"""llama.cpp's server sees the same in the same files: a text model and its projector."""

import base64
from pathlib import Path

import httpx
import numpy as np
import pytest
from localrun_testing.real_engines import llama_server_program
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
    image = tmp_path / "a.png"
    drawn = np.random.default_rng(7).integers(0, 256, (256, 256, 3), dtype=np.uint8)
    Image.fromarray(drawn).save(image, "PNG")
    with LLM(model, ctx=2048) as llm:
        ours = llm.generate("what?", images=[image], temperature=0, max_tokens=12)
    url = f"data:image/png;base64,{base64.b64encode(image.read_bytes()).decode()}"
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "what?"}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 12, "temperature": 0}
    more = ("--mmproj", str(model.with_name("mmproj-model.gguf")), "--image-max-tokens", "4096", "-fa", "off")
    with llama_server(program, str(model), 1, 1, 2048, more) as address:
        theirs = httpx.post(f"{address}/v1/chat/completions", json=body, timeout=300).raise_for_status().json()
    assert theirs["usage"]["prompt_tokens"] == ours.prompt_tokens
    assert ours.seen.image_tokens == 1024
    said = theirs["choices"][0]["message"]["content"]
    assert said
    assert ours.text.startswith(said), "their last character may be cut"
