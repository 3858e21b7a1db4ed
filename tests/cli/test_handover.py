"""`localrun handover`: its table, its lines, what `fit` says of it, and that docs/cluster.md has the same lines."""

import json
from importlib import import_module
from pathlib import Path

import pytest
from localrun_testing.faces import Faces
from localrun_testing.schemas import check

from localrun.fit.gpus import parse_gpus
from localrun.fit.handover import hand_over
from localrun.fit.serve_lines import vllm_lines
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.checkpoints import find_checkpoint

DOCS = Path(__file__).parents[2] / "docs"
LLAMA = ("llama-3.3-70b", "--offline")


def test_a_plan_in_words_and_as_json(faces: Faces) -> None:
    code, out, _ = faces.run("handover", *LLAMA, "--gpus", "4x80GiB")
    assert code == 0
    assert "meta-llama/Llama-3.3-70B-Instruct: ≈131 GiB of weights on 4 GPUs of 80.0 GiB" in out
    assert "host add NAME http://HOST:8000/v1" in out
    code, told, _ = faces.run("handover", *LLAMA, "--gpus", "4x80GiB", "--json")
    plan = json.loads(told)
    check(plan, "handover")
    assert (code, plan["tensor_parallel"], plan["approximate"]) == (0, 4, True)
    assert f"  {plan['vllm'][0]}\n" in out


def test_by_the_name_of_its_gguf(faces: Faces) -> None:
    plan = json.loads(faces.run("handover", "ggml-org/gpt-oss-120b-GGUF", "--gpus", "H100", "--offline", "--json")[1])
    assert plan["checkpoint"] == "openai/gpt-oss-120b"
    assert plan["weight_bytes"] < 70 << 30, "its checkpoint is MXFP4, too"


def test_no_room_names_what_is_enough(faces: Faces) -> None:
    code, out, _ = faces.run("handover", *LLAMA, "--gpus", "2x24GiB", "--check")
    assert code == 4
    assert "it takes --gpus 8x24GiB" in out
    assert "vllm serve" not in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((*LLAMA, "--gpus", "lots"), 2, "--gpus lots is no choice of GPUs"),
        ((*LLAMA, "--gpus", "4x80GiB", "--ctx", "9999999"), 2, "131,072 this model was made for"),
        (("nonsense", "--offline", "--gpus", "4x80GiB"), 3, "there is no model nonsense"),
        (("builtin", "--offline", "--gpus", "4x80GiB"), 3, ""),
        (("org/unknown", "--offline", "--gpus", "4x80GiB"), 7, "offline"),
        (LLAMA, 2, "--gpus"),
    ],
)
def test_errors(faces: Faces, arguments: tuple[str, ...], code: int, said: str) -> None:
    found, _, err = faces.run("handover", *arguments)
    assert (found, said in err) == (code, True)


def test_fit_hands_over_where_memory_is_missing(faces: Faces) -> None:
    code, out, _ = faces.run("fit", *LLAMA, "--memory", "4GiB")
    assert code == 0
    assert "Elsewhere meta-llama/Llama-3.3-70B-Instruct has room" in out
    assert "localrun handover llama-3.3-70b --gpus 2x80GiB" in out
    check(json.loads(faces.run("fit", *LLAMA, "--memory", "4GiB", "--json")[1])["handover"], "handover")
    assert json.loads(faces.run("fit", *LLAMA, "--memory", "900GiB", "--json")[1])["handover"] is None
    assert "Elsewhere" not in faces.run("fit", *LLAMA, "--memory", "900GiB")[1]


def test_the_page_and_its_files_have_these_lines(tmp_path: Path) -> None:
    checkpoint = find_checkpoint(Http(Access("", "", True, tmp_path)), "llama-3.3-70b")
    page = (DOCS / "cluster.md").read_text("utf-8")
    for nodes in (1, 2):
        for line in vllm_lines(hand_over(checkpoint, parse_gpus("4x80GiB", nodes))):
            assert line in page
    load = import_module("yaml").safe_load
    alone = load((DOCS / "compose/vllm.yaml").read_text("utf-8"))["services"]["vllm"]
    words = " ".join(alone["entrypoint"] + alone["command"]).replace("=", " ")
    assert words == vllm_lines(hand_over(checkpoint, parse_gpus("4x80GiB")))[0]
    node = load((DOCS / "compose/vllm-node.yaml").read_text("utf-8"))["services"]["vllm"]["command"][0]
    assert node.startswith(
        f"exec {vllm_lines(hand_over(checkpoint, parse_gpus('4x80GiB', 2)))[0].partition(' --node-rank')[0]}"
    )
