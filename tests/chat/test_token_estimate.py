"""Estimates of tokens beside what tokenizers of real models make of the same text."""

import base64
import random
from pathlib import Path
from statistics import median

import pytest

from localrun.chat import token_estimate
from localrun.chat.token_estimate import about_tokens, about_tokens_of_file
from localrun.formats.gguf import open_gguf
from localrun.text.tokenizer import Tokenizer, tokenizer_from_gguf

RNG = random.Random(5)
VOCABULARIES = ("qwen2", "llama-bpe", "llama-spm", "gemma-4", "deepseek-llm")
PROSE = (Path(__file__).parents[2] / "README.md").read_text()
CODE = Path(token_estimate.__file__).read_text()
LOG = "".join(
    f"2026-11-{1 + n % 28:02} 14:{n % 60:02}:{7 * n % 60:02},{n * 37 % 1000:03} INFO  [worker-{n % 8}] "
    f"GET /api/v2/items/{n * 7919} 200 {n % 300} ms client=10.0.{n % 256}.{n * 3 % 256}\n"
    for n in range(400)
)
TEXTS = {
    "prose": PROSE,
    "code": CODE,
    "log": LOG,
    "digits": "".join(f"{RNG.random():.9f}{',' if n % 8 else chr(10)}" for n in range(1500)),
    "base64": base64.b64encode(RNG.randbytes(9000)).decode(),
    "hex": RNG.randbytes(6000).hex(),
    "Chinese": "敏捷的棕色狐狸跳过了懒狗。今天的天气非常好，我们去公园散步吧。" * 100,
    "Japanese": "昨日は友達と一緒に映画を見に行きました。とても面白かったです。" * 100,
    "Russian": "Быстрая коричневая лиса прыгает через ленивую собаку, и никто этого не замечает. " * 80,
    "JSON": '{"id": 17, "name": "Ada", "tags": ["x", "y"], "at": "2026-01-02T03:04:05Z", "ok": true},\n' * 150,
}


@pytest.fixture(scope="module")
def tokenizers(shared_dir: Path) -> list[Tokenizer]:
    paths = [shared_dir / f"vectors/tokenizer/ggml-vocab-{name}.gguf" for name in VOCABULARIES]
    return [tokenizer_from_gguf(open_gguf(path).metadata) for path in paths]


@pytest.mark.parametrize("kind", TEXTS)
def test_it_is_near_what_tokenizers_of_real_models_count(kind: str, tokenizers: list[Tokenizer]) -> None:
    found = [len(tokenizer.encode(TEXTS[kind])) for tokenizer in tokenizers]
    about = about_tokens(TEXTS[kind])
    assert 0.75 * median(found) < about < 1.35 * median(found)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le-with-mark", "utf-16-be-with-mark"])
@pytest.mark.parametrize("kind", TEXTS)
def test_a_file_of_any_size_is_told_as_its_text_is(kind: str, encoding: str, tmp_path: Path) -> None:
    text = TEXTS[kind]
    for times in (1, 20):
        path, written = tmp_path / "a.txt", text * times
        codec, _, mark = encoding.partition("-with-")
        path.write_bytes((("\ufeff" if mark else "") + written).encode(codec))
        assert about_tokens_of_file(path, path.stat().st_size) == pytest.approx(about_tokens(written), rel=0.2)


def test_no_figure_is_made_up_for_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(5000))
    (tmp_path / "empty").touch()
    assert about_tokens_of_file(tmp_path / "a.bin", 5000) == 0
    assert about_tokens_of_file(tmp_path / "empty", 0) == 0
    assert about_tokens_of_file(tmp_path / "gone", 7) == 0
    assert about_tokens_of_file(tmp_path, 7) == 0
    assert about_tokens("") == 0
