"""The load of a server by its page of metrics, under the names that each engine has for it, and its own times."""

from collections.abc import Iterator
from typing import Any

import pytest
from localrun_testing.fake_chat_server import DONE, FakeChatServer, Reply, delta, event, failure, fake_chat_server
from localrun_testing.waiting import PATIENCE

from localrun.base.events import Completion, Done
from localrun.base.request import Request
from localrun.base.views import ServerLoad
from localrun.client.remote import client as remote
from localrun.client.remote.client import RemoteClient
from localrun.client.remote.endpoint import Endpoint
from localrun.diagnose.server_words import load_words, time_words

HI = Request(messages=({"role": "user", "content": "Hi"},))
VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a b} c"} 2.0
vllm:num_requests_running{engine="1",model_name="smol"} 1.0
vllm:num_requests_waiting{engine="0",model_name="smol"} 5.0
vllm:kv_cache_usage_perc{engine="0",model_name="smol"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="smol"} 0.75
vllm:prefix_cache_queries_total{engine="0",model_name="smol"} 400.0
vllm:prefix_cache_queries_created{engine="0",model_name="smol"} 1.7958e+09
vllm:prefix_cache_hits_total{engine="0",model_name="smol"} 1e+02
"""
LLAMA_CPP = """# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 30
llamacpp:prompt_tokens_cached_total 10
llamacpp:requests_processing 1
llamacpp:requests_deferred 0
"""
SGLANG = """sglang:num_running_reqs{model_name="q",tp_rank="0"} 4.0
sglang:num_queue_reqs{model_name="q",tp_rank="0"} 0.0
sglang:token_usage{model_name="q",tp_rank="0"} 0.5
sglang:cache_hit_rate{model_name="q",tp_rank="0"} 0.99
sglang:prompt_tokens_total{model_name="q"} 1000.0
sglang:cached_tokens_total{model_name="q",cache_source="device"} 150.0
sglang:cached_tokens_total{model_name="q",cache_source="host"} 100.0
"""
LOCALRUN = """localrun_requests{phase="reading"} 1
localrun_requests{phase="writing"} 2
localrun_requests{phase="queued"} 3
localrun_prompt_tokens_total 32
localrun_cached_tokens_total 8
"""


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with fake_chat_server() as server:
        yield server


def client_of(server: FakeChatServer, owner: str, metrics: Any) -> RemoteClient:
    server.models = [{"id": "tiny", "owned_by": owner}]
    text = Reply((metrics.encode(),)) if isinstance(metrics, str) else metrics
    server.pages = {"/metrics": text, "/api/version": {"version": "0.12", "localrun": "0.1"}}
    return RemoteClient(Endpoint("lab", server.url))


@pytest.mark.parametrize(
    ("owner", "metrics", "load"),
    [
        ("vllm", VLLM, ServerLoad(3, 5, 0.5, 0.25)),
        ("vllm", VLLM.replace("kv_cache_usage", "gpu_cache_usage"), ServerLoad(3, 5, 0.5, 0.25)),
        ("llamacpp", LLAMA_CPP, ServerLoad(1, 0, None, 0.25)),
        ("sglang", SGLANG, ServerLoad(4, 0, 0.5, 0.25)),
        ("hub", LOCALRUN, ServerLoad(3, 3, None, 0.25)),
        ("vllm", "vllm:num_requests_running NaN\nvllm:num_requests_waiting -1\nother 5\nx", ServerLoad()),
        ("vllm", "vllm:prefix_cache_hits_total 0\nvllm:prefix_cache_queries_total 0\n", ServerLoad()),
        ("vllm", "", None),
        ("vllm", failure(404), None),
        ("vllm", failure(401), None),
    ],
)
def test_the_load_is_as_the_engine_tells_it(
    server: FakeChatServer, owner: str, metrics: Any, load: ServerLoad | None
) -> None:
    assert client_of(server, owner, metrics).load() == load


def test_a_page_of_another_engine_is_not_read(server: FakeChatServer) -> None:
    assert client_of(server, "vllm", SGLANG).load() == ServerLoad()


def test_it_is_not_asked_for_at_every_look(server: FakeChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LOAD_SECONDS", PATIENCE)
    client = client_of(server, "vllm", VLLM)
    assert client.load() == client.load()
    assert len([seen for seen in server.probed if seen.path == "/metrics"]) == 1
    monkeypatch.setattr(remote, "LOAD_SECONDS", 0.0)
    client._load_until = 0.0
    assert client.load() == client.load()
    assert len([seen for seen in server.probed if seen.path == "/metrics"]) == 3


def test_words_say_only_what_is_told() -> None:
    assert load_words(ServerLoad()) == []
    assert load_words(ServerLoad(running=1, cache_hits=0.25)) == [
        "1 answered now",
        "25.0 % of all prompt tokens found in it so far",
    ]


# ---- times


def done_of(server: FakeChatServer, **last: Any) -> Completion:
    client = client_of(server, "llamacpp", "")
    server.replies = [Reply((delta(content="Yes"), delta("stop"), event(choices=[], **last), DONE))]
    *_, done = client.generate(HI)
    assert isinstance(done, Done)
    return done.completion


def test_the_time_that_a_server_tells_is_told_apart_from_the_rest(server: FakeChatServer) -> None:
    timings = done_of(server, timings={"prompt_ms": 0.001, "predicted_ms": 5.5, "prompt_n": 3}).timings
    assert (timings.prefill_ms, timings.decode_ms, timings.queue_ms) == (0.001, 5.5, 0.0)
    assert timings.connect_ms is not None
    assert 0 < timings.connect_ms <= timings.ttft_ms
    ours = done_of(server, localrun={"queue_ms": 2, "prefill_ms": 3.0, "decode_ms": True}).timings
    assert (ours.queue_ms, ours.prefill_ms) == (2.0, 3.0)


@pytest.mark.parametrize("told", [{"prompt_ms": "1"}, {"prompt_ms": -1}, {"prompt_ms": None}, [], 5])
def test_odd_times_are_none(server: FakeChatServer, told: Any) -> None:
    assert done_of(server, timings=told).timings.prefill_ms == 0.0


def test_words_for_times() -> None:
    told = {"ttft_ms": 100.0, "connect_ms": 4.0, "prefill_ms": 60.0, "queue_ms": 10.0}
    assert time_words(told) == [
        "first token after 100 ms; the server says 60.0 ms to read the prompt and 10.0 ms in the queue: 30.0 ms went by"
        " elsewhere, as on the network"
    ]
    assert time_words({"ttft_ms": 100.0, "connect_ms": 4.0}) == [
        "first token after 100 ms, 4.00 ms of it to connect; the server does not say how long it read"
    ]
    assert time_words({"completion_tokens": 11, "decode_tps": 50.0, "decode_ms": 110.0}) == [
        "a token every 20.0 ms as it came here, 10.0 ms by the server's clock"
    ]
    assert time_words({}) == []
