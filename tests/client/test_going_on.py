"""An answer that was cut goes on as if it had not been, and a preview tells what reading it would take."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localrun.base.errors import UsageError
from localrun.base.events import Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.client.worker.client import WorkerClient
from localrun.text.harmony import HARMONY, MUSE
from localrun.text.reasoning import ReasoningTags, Splitter

ASKED = ({"role": "user", "content": "Tell me a story about an otter."},)
WHOLE = Request(messages=ASKED, sampling=Sampling(temperature=0.0), max_tokens=14)
MODEL = Path(resource("localrun/builtin/localrun-tiny.gguf"))


@pytest.fixture(scope="module")
def client() -> Iterator[LocalClient]:
    with LocalClient(LoadOptions(MODEL, name="builtin")) as client:
        yield client


def answer(client: LocalClient, request: Request) -> Done:
    return next(event for event in client.generate(request) if isinstance(event, Done))


def continued(done: Done, **more: object) -> Request:
    begun = {"role": "assistant", "content": done.completion.text}
    known = (*done.prompt_ids, *done.completion.token_ids)
    return replace(WHOLE, messages=(*ASKED, begun), continues=True, **{"known_ids": known, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [1, 2, 7, 13])
def test_cut_anywhere_it_ends_the_same(client: LocalClient, n: int) -> None:
    whole, cut = answer(client, WHOLE), answer(client, replace(WHOLE, max_tokens=n))
    rest = answer(client, continued(cut, max_tokens=14 - n))
    assert cut.completion.token_ids + rest.completion.token_ids == whole.completion.token_ids
    assert cut.completion.text + rest.completion.text == whole.completion.text
    assert (rest.completion.cached_tokens or 0) >= len(rest.prompt_ids) - 1


def test_a_text_without_known_ids_is_continued(client: LocalClient) -> None:
    cut = answer(client, replace(WHOLE, max_tokens=6))
    rest = answer(client, continued(cut, known_ids=(), max_tokens=3))
    tokenizer = client.model.text.tokenizer
    assert tokenizer.decode(rest.prompt_ids).endswith(cut.completion.text)
    assert rest.prompt_ids[: len(cut.prompt_ids)] == cut.prompt_ids
    control = next(iter(tokenizer.control_tokens))
    spelled = replace(continued(cut, known_ids=()), messages=(*ASKED, {"role": "assistant", "content": f"a{control}b"}))
    n_control = len([i for i in client.model.text.prepare(spelled).ids if i in tokenizer.control_ids])
    assert n_control == len([i for i in cut.prompt_ids if i in tokenizer.control_ids])


def test_only_an_answer_is_gone_on_with(client: LocalClient) -> None:
    with pytest.raises(UsageError, match="continues is True"):
        client.generate(replace(WHOLE, continues=True))


def test_a_preview_counts_what_will_be_read(client: LocalClient) -> None:
    request = replace(WHOLE, messages=({"role": "user", "content": "How deep is the sea, in metres?"},))
    before = client.preview(request, pieces=True)
    done = answer(client, request)
    assert (before.n_tokens, before.ids) == (done.completion.prompt_tokens, done.prompt_ids)
    assert "How deep is the sea, in metres?" in "".join(before.pieces)
    assert before.n_cached <= (done.completion.cached_tokens or 0)  # type: ignore[operator]
    assert client.preview(request).n_cached >= done.completion.prompt_tokens - 1  # type: ignore[operator]
    assert client.preview(request).ids == ()


def test_a_process_of_its_own_previews_the_same(client: LocalClient) -> None:
    with WorkerClient(LoadOptions(MODEL, name="builtin")) as worker:
        there, here = worker.preview(WHOLE, pieces=True), client.preview(WHOLE, pieces=True)
        assert there is not None
        assert (there.ids, there.pieces) == (here.ids, here.pieces)
        with pytest.raises(UsageError):
            worker.preview(Request())


TAGS = ReasoningTags("<think>", "</think>")
GPT_OSS = ReasoningTags("<|channel|>analysis<|message|>", "<|end|>", headers=HARMONY)
MUSE_GLIMMER = ReasoningTags(" to=self<|message|>", "<|eom|>", headers=MUSE)


def said(splitter: Splitter, text: str) -> list[tuple[str, str]]:
    return [*splitter.push(text), *splitter.flush()]


@pytest.mark.parametrize("tags", [TAGS, GPT_OSS, MUSE_GLIMMER])
def test_thinking_that_was_cut_goes_on_as_thinking(tags: ReasoningTags) -> None:
    assert said(tags.splitter(inside=True, goes_on=True), "\nmore") == [("thinking", "\nmore")]
    assert said(tags.splitter(goes_on=True), "\nmore") == [("answer", "\nmore")]
    assert said(TAGS.splitter(inside=True, goes_on=True), " a</think>b") == [("thinking", " a"), ("answer", "b")]
