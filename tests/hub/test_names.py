import pytest

from localrun.hub.names import FileName, HubName, parse_file_name, parse_hub_name, same_precision


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Qwen3-4B-Q4_K_M.gguf", FileName("qwen3-4b", "Q4_K_M")),
        ("gemma-2-2b-it.q8_0.gguf", FileName("gemma-2-2b-it", "Q8_0")),
        ("big-UD-IQ2_XXS-00002-of-00003.gguf", FileName("big", "UD-IQ2_XXS", 2, 3)),
        ("tiny-f16.gguf", FileName("tiny", "F16")),
        ("gpt-oss-20b-MXFP4.gguf", FileName("gpt-oss-20b", "MXFP4")),
        ("bitnet-TQ1_0.gguf", FileName("bitnet", "TQ1_0")),
        ("model.gguf", FileName("model", "")),
        ("Q4_0.gguf", FileName("q4_0", "Q4_0")),
        ("llama-3.2-1b.gguf", FileName("llama-3.2-1b", "")),
    ],
)
def test_file_names(name: str, parts: FileName) -> None:
    assert parse_file_name(name) == parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen/Qwen3-4B-GGUF", HubName("Qwen/Qwen3-4B-GGUF")),
        ("Qwen/Qwen3-4B-GGUF:Q4_K_M", HubName("Qwen/Qwen3-4B-GGUF", "Q4_K_M")),
        ("hf.co/a/b", HubName("a/b")),
        ("hf:a/b:file.gguf", HubName("a/b", "file.gguf")),
        ("https://huggingface.co/a/b/", HubName("a/b")),
        ("https://huggingface.co/a/b/resolve/main/sub/x.gguf?download=true", HubName("a/b", "sub/x.gguf")),
        ("https://huggingface.co/a/b/blob/main/x.gguf", HubName("a/b", "x.gguf")),
        ("qwen3-4b", None),
        ("a/b/c", None),
        ("./a", None),
        ("../a/b", None),
        ("a b/c", None),
    ],
)
def test_hub_names(text: str, expected: HubName | None) -> None:
    assert parse_hub_name(text) == expected


def test_precisions_compare_as_people_write_them() -> None:
    assert same_precision("q4_k_m", "Q4_K_M")
    assert same_precision("fp16", "F16")
    assert not same_precision("Q4_K_M", "Q4_K_S")
