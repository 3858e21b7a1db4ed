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
        ("Q4_0.gguf", FileName("", "Q4_0")),
        ("Nice-8B-Q4_K_M-imat.gguf", FileName("nice-8b", "Q4_K_M", remark="imat")),
        ("Nice-8B_IQ4_XS_imat-00001-of-00002.GGUF", FileName("nice-8b", "IQ4_XS", 1, 2, "imat")),
        ("Nice-8B.i1-Q4_K_M.gguf", FileName("nice-8b.i1", "Q4_K_M")),
        ("gem-UD-Q4_K_XL.gguf", FileName("gem", "UD-Q4_K_XL")),
        ("phi-3-Q4_K_M-128k-v2.gguf", FileName("phi-3-128k-v2", "Q4_K_M")),
        ("base-F16-tuned-Q4_0_4_8.gguf", FileName("base-f16-tuned", "Q4_0_4_8")),
        ("Nice-8B-BF16-Q8_0.gguf", FileName("nice-8b", "Q8_0", remark="bf16")),
        ("Nice-8B-Q4_K_M-f16.gguf", FileName("nice-8b", "Q4_K_M", remark="f16")),
        ("Nice-8B-IQ4_XS-attn-Q6.gguf", FileName("nice-8b-attn", "IQ4_XS", remark="q6")),
        ("Nice-8B-BF16-Q4.gguf", FileName("nice-8b", "Q4", remark="bf16")),
        ("base (Q8_0).gguf", FileName("base", "Q8_0")),
        ("report-Q3-2024.gguf", FileName("report-q3-2024", "")),
        ("STUD-Q4_0.gguf", FileName("stud", "Q4_0")),
        ("x-MXFP4_MOE-imatrix.gguf", FileName("x", "MXFP4_MOE", remark="imatrix")),
        ("Q4_K_M/model-00002-of-00003.gguf", FileName("model", "Q4_K_M", 2, 3)),
        ("Nice-8B-UD-Q2_K_XL/Nice-8B.gguf", FileName("nice-8b", "UD-Q2_K_XL")),
        ("Q4_K_M-tests/model.gguf", FileName("model", "")),
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
