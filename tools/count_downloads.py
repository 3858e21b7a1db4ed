"""Count downloads of language models by architecture, format and age: `tools/downloads.csv`, from llmfit's table.

`python -m tools.count_downloads llmfit-1.1.17-….whl` reads the table within the program of that wheel (PyPI), which
lists repositories of Hugging Face with their downloads. Formats are told by names, as people give them.
"""

import csv
import json
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

COUNTED = Path(__file__).with_name("downloads.csv")
MOST_PARAMETERS = 40e9
FEWEST_DOWNLOADS = 50_000  # of an architecture that has a row of its own
OTHERS = "others"
TASKS = ("text-generation", "image-text-to-text", "any-to-any", "unknown")
# What such a task may also be: readers of pages, what drafts for another model, judges, embeddings, speech.
OTHER_KINDS = re.compile(
    r"ocr|eagle|dflash|dspark|draft|speculator|embed|rerank|reward|tts|whisper|asr\b", re.IGNORECASE
)
ENCODERS = {
    *("bert", "roberta", "distilbert", "xlm-roberta", "electra", "bart", "mbart", "t5", "mt5", "t5gemma2", "florence2"),
    *("blip-2", "xlnet", "deepseek_vl_v2", "GOT", "molformer", "hyenadna", "nemotron_parse"),
}
FORMATS = (  # the first whose pattern is found in `owner/name`, in small letters
    ("MLX", r"mlx"),
    ("GGUF", r"gguf"),
    ("ONNX", r"onnx"),
    ("OpenVINO", r"openvino"),
    ("EXL2 and EXL3", r"exl[23]"),
    ("MLC", r"-mlc\b"),
    ("LiteRT", r"litert|tflite"),
    ("HQQ", r"hqq"),
    ("torchao", r"torchao|int[48]wo"),
    ("AQLM", r"aqlm"),
    ("MXFP4", r"mxfp4"),
    ("NVFP4", r"nvfp4"),
    ("FP8", r"fp8"),
    ("AWQ", r"awq"),
    ("GPTQ", r"gptq"),
    ("AutoRound", r"auto-?round"),
    ("bitsandbytes", r"bnb|bitsandbytes|nf4"),
    ("compressed-tensors", r"w[48]a(8|16)|quantized\.w|-ct$|^(redhatai|neuralmagic|nm-testing)/.*-int[48]"),
    ("unknown packing", r"\b\d-?bits?\b|\bint[48]\b|\bfp4\b"),
)
TAGGED = {"mlx": "MLX", "awq": "AWQ", "gptq": "GPTQ", "autoround": "AutoRound"}
FLOATS = "floats"
Row = Mapping[str, Any]


def table_of(wheel: Path) -> list[Row]:
    """The list of repositories, a JSON text within the program of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        program = archive.read(next(name for name in archive.namelist() if name.endswith("/scripts/llmfit")))
    begin = program.rindex(b"[\n  {\n", 0, program.index(b'"hf_downloads"'))
    rows: list[Row] = json.JSONDecoder().raw_decode(program[begin:].decode(errors="replace"))[0]
    return rows


def is_language_model(row: Row) -> bool:
    """Whether it is one that a person chats with or completes text by, small enough for a desktop."""
    name, model_type = row["name"].partition("/")[2], str(row["architecture"])
    if row["pipeline_tag"] not in TASKS or model_type in ENCODERS or (row["parameters_raw"] or 0) > MOST_PARAMETERS:
        return False
    return not (OTHER_KINDS.search(name) or OTHER_KINDS.search(model_type))


def format_of(row: Row) -> str:
    """The format of the files of a repository."""
    name = row["name"].lower()
    found = next((word for word, pattern in FORMATS if re.search(pattern, name)), FLOATS)
    tagged = TAGGED.get(str(row.get("format")), found)
    return tagged if found in (FLOATS, "unknown packing") else found


def age_of(row: Row) -> str:
    """When its model was released, as coarse as it is counted."""
    released = str(row["release_date"] or "")
    return "since 2026-07" if released >= "2026-07" else "2026" if released >= "2026" else "before"


def counted(rows: Iterable[Row]) -> Counter[tuple[str, str, str]]:
    """Downloads by architecture (`model_type`), format and age; architectures of few are one."""
    models = [row for row in rows if row["hf_downloads"] and is_language_model(row)]
    by_type = Counter[str]()
    for row in models:
        by_type[str(row["architecture"])] += row["hf_downloads"]
    found = Counter[tuple[str, str, str]]()
    for row in models:
        model_type = str(row["architecture"])
        known = by_type[model_type] >= FEWEST_DOWNLOADS
        found[model_type if known else OTHERS, format_of(row), age_of(row)] += row["hf_downloads"]
    return found


def main() -> None:
    (wheel,) = map(Path, sys.argv[1:])
    with COUNTED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("model_type", "format", "released", "downloads"))
        writer.writerows((*key, n) for key, n in sorted(counted(table_of(wheel)).items()))


if __name__ == "__main__":
    main()
