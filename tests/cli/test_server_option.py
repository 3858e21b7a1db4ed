"""`run` and `chat` in front of a server of the OpenAI protocol: the same words, streams and exit codes."""

import json
from pathlib import Path

import pytest
from localrun_testing.faces import Faces, script
from localrun_testing.fake_chat_server import DONE, FakeChatServer, Reply, event, failure
from localrun_testing.schemas import check

from localrun.chat.chat_settings import held_with
from localrun.chat.journal import ChatStore
from localrun.client.remote.endpoint import Endpoint
from localrun.client.remote.endpoints import write_endpoints


def asked(server: FakeChatServer) -> list[str]:
    """What was sent to be answered last: role and text of every message."""
    return [f"{message['role']}: {message['content']}" for message in server.seen[-1].body["messages"]]


def test_a_server_answers_one_prompt(faces: Faces, server: FakeChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALRUN_SERVER_KEY", "sk-canary-123456")
    code, out, err = faces.run("run", "--server", server.url, "--system", "Be brief.", "--no-stdin", "--stats", "Hi")
    assert (code, out) == (0, "Hello, wörld\n")
    assert asked(server) == ["system: Be brief.", "user: Hi"]
    assert server.seen[-1].key == "sk-canary-123456"
    assert "9 tokens, 5 of them cached" in err
    assert "sk-canary" not in out + err
    assert not faces.clients, "no model was loaded here"


@pytest.mark.parametrize("flag", ["--json", "--jsonl"])
def test_its_answer_is_json_of_the_same_schema(faces: Faces, server: FakeChatServer, flag: str) -> None:
    code, out, _ = faces.run("run", "--server", server.url, "--no-stdin", flag, "Hi")
    assert code == 0
    lines = [json.loads(line) for line in (out.splitlines() if flag == "--jsonl" else [out])]
    done = {name: value for name, value in lines[-1].items() if name != "type"}
    check(done, "run")
    assert (done["text"], done["backend"], done["cached_tokens"]) == ("Hello, wörld", "remote", 5)


def test_a_model_of_the_server_is_named(faces: Faces, server: FakeChatServer) -> None:
    assert faces.run("run", "--server", server.url, "-m", "big", "--no-stdin", "Hi")[0] == 0
    assert server.seen[-1].body["model"] == "big"
    code, _, err = faces.run("run", "--server", server.url, "-m", "huge", "--no-stdin", "Hi")
    assert code == 3
    assert "has no model huge" in err


def test_a_chat_goes_on_where_it_was_held(
    faces: Faces, server: FakeChatServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_endpoints([Endpoint("lab", server.url, "sk-canary-123456")])
    script(monkeypatch, "one\n/sees\n")
    code, out, err = faces.run("chat", "--server", "lab", "--history")
    assert (code, out) == (2, "Hello, wörld\n")
    assert "does not say what its model sees" in err
    server.models = [{"id": "tiny", "owned_by": "vllm"}]
    server.pages = {"/tokenize": {"tokens": [1, 2]}, "/detokenize": {"prompt": "<user>one"}}
    script(monkeypatch, "/sees\n")
    assert "<user>one\n(2 tokens)" in faces.run("chat", "--continue")[2]
    script(monkeypatch, "two\n")
    assert faces.run("chat", "--continue")[0] == 0
    assert asked(server) == ["user: one", "assistant: Hello, wörld", "user: two"]
    assert server.seen[-1].key == "sk-canary-123456"
    store = ChatStore(home / "chats")
    held = held_with(store.open(store.summaries()[0].id))
    assert (held.server, held.model) == ("lab", "tiny")


def test_a_server_that_is_gone_is_said_and_the_usual_model_answers(
    faces: Faces, server: FakeChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_endpoints([Endpoint("lab", server.url)])
    script(monkeypatch, "one\n")
    assert faces.run("chat", "--server", "lab", "--history")[0] == 0
    write_endpoints([])
    script(monkeypatch, "two\n")
    code, out, err = faces.run("chat", "--continue")
    assert (code, out) == (0, "You said two.\n")
    assert "(lab, the server of this chat, is not among the added servers)" in err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--server", "nowhere"), 3, "there is no server nowhere"),
        (("--server", "ftp://host/v1"), 2, "is not the address of a server"),
        (("--server", "{url}", "--ctx", "512", "--kv", "q8"), 2, "--ctx and --kv: the server decides that"),
        (("--server", "{url}", "--precision", "int4"), 2, "--precision: the server decides that"),
        (("--server", "http://127.0.0.1:9/v1"), 8, "127.0.0.1:9"),
    ],
)
def test_unsupported_server_options_are_errors(
    faces: Faces, server: FakeChatServer, arguments: tuple[str, ...], code: int, says: str
) -> None:
    given = [argument.replace("{url}", server.url) for argument in arguments]
    got, out, err = faces.run("run", *given, "--no-stdin", "--json", "Hi")
    assert got == code, err
    assert says in err
    assert json.loads(out)["error"]["code"] == code


def test_a_refusal_of_the_server_is_an_error(faces: Faces, server: FakeChatServer) -> None:
    server.replies = [failure(401, "who are you?")]
    code, out, err = faces.run("run", "--server", server.url, "--no-stdin", "Hi")
    assert code == 2
    assert out == ""
    assert "key" in err


def test_bench_measures_what_arrives(faces: Faces, server: FakeChatServer) -> None:
    code, out, _ = faces.run(
        "bench", "--server", server.url, "-p", "64", "-n", "3", "-b", "1", "-b", "3", "-r", "2", "--json"
    )
    measured = json.loads(out)
    check(measured, "bench")
    assert (code, measured["model"], measured["backend"]) == (0, "tiny", "remote")
    assert [(run["kind"], run["batch"], len(run["tps_all"])) for run in measured["runs"]] == [
        ("prefill", 1, 2),
        ("decode", 1, 2),
        ("decode", 3, 2),
    ]
    prompts = [seen.body["messages"][0]["content"] for seen in server.seen if seen.method == "POST"]
    assert len(prompts) == 3 * (1 + 1 + 3)
    assert len({prompt[:8] for prompt in prompts}) == len(prompts), "no prompt is found in a cache"
    assert "first token after" in faces.run("bench", "--server", server.url, "-n", "2", "-p", "0", "-r", "1")[1]


def test_explain_measures_what_shows_from_outside(faces: Faces, server: FakeChatServer) -> None:
    code, out, _ = faces.run("explain", "--server", server.url, "--json")
    told = json.loads(out)
    check(told, "explain")
    assert (code, [topic["topic"] for topic in told["topics"]]) == (0, ["phases", "reuse", "batch"])
    chats = [seen.body["messages"] for seen in server.seen if len(seen.body.get("messages", [])) == 7]
    assert chats[0][1:] == chats[1][1:], "the last turn with another beginning"
    assert chats[0][0] != chats[1][0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bench", "-d", "512"), "-d: the server decides that"),
        (("bench", "--compare", "a", "b"), "--compare: the server decides that"),
        (("bench", "-p", "0", "-n", "0"), "nothing to measure"),
        (("explain", "precision"), "does not show from outside a server"),
        (("explain", "--size", "8B"), "--size predicts"),
        (("explain", "--kv", "q8"), "--kv: the server decides that"),
    ],
)
def test_measures_that_a_server_has_not(
    faces: Faces, server: FakeChatServer, arguments: tuple[str, ...], said: str
) -> None:
    code, _, err = faces.run(*arguments, "--server", server.url)
    assert (code, said in err) == (2, True)
    assert not [seen for seen in server.seen if seen.method == "POST"]


def test_logprobs_of_a_server_are_told_as_lines_and_as_json(faces: Faces, server: FakeChatServer) -> None:
    other = {"token": "\x1b[2JNo", "logprob": -1.5}
    entry = {"token": "Yes ", "id": 7, "logprob": -0.105, "top_logprobs": [{"token": "Yes ", "logprob": -0.105}, other]}
    choice = {"index": 0, "delta": {"content": "Yes "}, "logprobs": {"content": [entry]}, "finish_reason": "stop"}
    server.replies = [Reply((event(choices=[choice]), DONE))]
    asked = ("run", "--server", server.url, "--no-stdin", "--logprobs", "2")
    code, out, err = faces.run(*asked, "Hi")
    assert (code, out) == (0, "Yes \n")
    assert "90.0 %  Yes·" in err
    assert "No 22.3 %" in err
    assert "\x1b" not in err
    _, out, _ = faces.run(*asked, "--json", "Hi")
    told = json.loads(out)
    check(told, "run")
    [token] = told["logprobs"]
    assert (token["token"], token["id"], [one["token"] for one in token["top"]]) == ("Yes ", 7, ["Yes ", "\x1b[2JNo"])
    _, out, _ = faces.run(*asked, "--jsonl", "Hi")
    tokens = [line for line in map(json.loads, out.splitlines()) if line["type"] == "token"]
    assert [token["logprob"]["logprob"] for token in tokens] == [-0.105]
    code, _, err = faces.run("run", "--server", server.url, "--no-stdin", "--logprobs", "21", "Hi")
    assert code == 2
    assert "20" in err
