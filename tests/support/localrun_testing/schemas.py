"""The JSON of every command, as JSON Schema. `tools/write_json_docs.py` turns it into docs/json.md."""

import functools
from types import NoneType
from typing import Any, get_args, get_type_hints

import jsonschema  # type: ignore[import-untyped]

from localrun.base.setting_rows import SETTINGS
from localrun.base.settings import Settings
from localrun.hub.disk.stored import Source

Schema = dict[str, Any]


def field(kind: str | list[str], text: str, **more: Any) -> Schema:
    return {"type": kind, "description": text, **more}


def record(text: str, /, **fields: Schema) -> Schema:
    required = [name for name, schema in fields.items() if not schema.get("optional")]
    shape = {"type": "object", "properties": fields, "required": required, "additionalProperties": False}
    return {**shape, "description": text}


def rows(text: str, item: Schema, optional: bool = False) -> Schema:
    schema: Schema = {"type": "array", "items": item, "description": text}
    return schema | ({"optional": True} if optional else {})


def counts(kind: str, text: str) -> Schema:
    return field("object", text, additionalProperties={"type": kind})


TEXT, NUMBER, WHOLE = "string", "number", "integer"

_UNTOLD = "; null where a server does not tell"

COMPLETION = {
    "model": field(TEXT, "name of the model"),
    "precision": field(TEXT, "as in its name, or the commonest type in the file"),
    "backend": field(TEXT, "what computed: reference, cpu, cuda, mps, or remote for a server"),
    "engine": {
        "enum": ["own", "attached", "remote"],
        "description": "whose answered: loaded for this program, shared by a running localrun, or of a server",
    },
    "text": field(TEXT, "the answer"),
    "thinking": field(TEXT, "what the model thought before it, if it does"),
    "stop_reason": {
        "enum": ["stop", "length", "cancelled", "loop"],
        "description": "why it ended; loop: it only repeated itself, and --stop-on-loop was on",
    },
    "prompt_tokens": field([WHOLE, "null"], f"tokens of the prompt, template included{_UNTOLD}", minimum=0),
    "cached_tokens": field([WHOLE, "null"], f"of these, tokens that were not computed again{_UNTOLD}", minimum=0),
    "completion_tokens": field(WHOLE, "tokens of the answer and the thinking: the length of token_ids", minimum=0),
    "thinking_tokens": field([WHOLE, "null"], f"of these, tokens of the thinking{_UNTOLD}", minimum=0),
    "token_ids": rows("the tokens, without the one that stopped", field(WHOLE, "id", minimum=0)),
    "load_ms": field(NUMBER, "time to load the model"),
    "ttft_ms": field(NUMBER, "time to first token, loading not included"),
    "itl_ms_p50": field(NUMBER, "median time between tokens"),
    "itl_ms_p95": field(NUMBER, "95th percentile of it"),
    "prefill_tps": field([NUMBER, "null"], "prompt tokens computed per second, without cached ones; null for a server"),
    "decode_tps": field([NUMBER, "null"], "answer tokens per second; null for a few of a server"),
    "peak_rss": field([WHOLE, "null"], "most memory the process had, bytes; null for a server"),
    "kv_bytes": field([WHOLE, "null"], "KV cache that this answer held when it ended, bytes; null for a server"),
    "kv_codec": field(TEXT, "how the KV cache is stored"),
    "ctx": field(WHOLE, "context length, tokens"),
    "seed": field(WHOLE, "repeats the answer with --seed"),
    "path": field(TEXT, "where the model is; absent where it is no file", optional=True),
    "notes": rows("what a user should know about this model or machine", field(TEXT, "a sentence")),
    "cache_note": field(TEXT, "why no more of the prompt was cached; empty when nothing was in the way"),
    "restored_tokens": field(WHOLE, "of the cached tokens, those read back from disk", minimum=0),
    "replayed_tokens": field(WHOLE, "computed again for layers whose window had moved on", minimum=0),
    "drafted_tokens": field(WHOLE, "guessed tokens of the answer, verified several in a step", minimum=0),
    "accepted_tokens": field(WHOLE, "of the drafted tokens, the right ones: each saved a step", minimum=0),
    "draft_searches": field(WHOLE, "times that tokens to guess were looked for", minimum=0),
    "draft_gain": field(
        [NUMBER, "null"], "times as fast as without guesses, estimated from what its steps took; null: none", minimum=0
    ),
    "drafts_off": field(TEXT, "why no tokens are guessed by this model; empty where they are"),
    "steps_ahead": field(WHOLE, "steps that a GPU began before their token was known", minimum=0),
    "steps_ahead_used": field(WHOLE, "of these, the right ones: the others were begun for nothing", minimum=0),
    "steps_without_room": field(WHOLE, "steps of a GPU whose memory had no room for a graph of them", minimum=0),
    "images": field(WHOLE, "images of the prompt", minimum=0),
    "image_tokens": field(WHOLE, "of the prompt's tokens, those of its images", minimum=0),
    "encode_ms": field(NUMBER, "time to encode images; 0 where that was done before", minimum=0),
    "render_ms": field(NUMBER, "time of the chat template"),
    "tokenize_ms": field(NUMBER, "time to turn its text into tokens"),
    "queue_ms": field(NUMBER, "waiting for other answers"),
    "restore_ms": field(NUMBER, "time to read kept blocks from disk"),
    "prefill_ms": field(NUMBER, "time to read the prompt"),
    "decode_ms": field(NUMBER, "time to write the answer"),
    "connect_ms": field([NUMBER, "null"], "until the connection to a server stood; null without one"),
    "tool_calls": rows(
        "tools that the model called, in this order",
        record(
            "a call",
            id=field(TEXT, "its id, for the result to name"),
            name=field(TEXT, "the tool"),
            arguments=field(TEXT, "a JSON object; the beginning of one where the call is not complete"),
            is_complete=field("boolean", "whether it was written to its end"),
        ),
    ),
    "loop_period": field(WHOLE, "tokens that the answer ended up repeating over and over; 0: it did not", minimum=0),
    "stop_string": field(TEXT, "the stop string that ended the answer; empty where none did"),
    "computed_tokens": field([WHOLE, "null"], "of the prompt, computed this time, replayed ones included", minimum=0),
    "held_tokens": field([WHOLE, "null"], "of prompt and answer, in the KV cache when it ended", minimum=0),
    "kept_kv_bytes": field([WHOLE, "null"], "KV cache of other chats, kept to be gone on with", minimum=0),
    "kv_budget_bytes": field([WHOLE, "null"], "what the KV cache of all chats may take", minimum=0),
    "work": {
        **record(
            "what a token takes; null where that does not tell how fast it can be",
            weight_bytes=field(WHOLE, "weights that are read"),
            macs=field(WHOLE, "multiply-adds of 8-bit numbers"),
            wide_macs=field(WHOLE, "multiply-adds of wider numbers"),
            attention_macs=field(WHOLE, "as many again for each token before it"),
        ),
        "type": ["object", "null"],
    },
    "mapped_bytes": field(WHOLE, "of the weights, those that stay on disk", minimum=0),
    "meanwhile": {
        **record(
            "what else may have slowed it down, apart from its own work; null where it was not measured",
            changed_at=field([WHOLE, "null"], "first token of the prompt that is not what this chat had there before"),
            changed_turn=field(WHOLE, "the turn that is in; 0: what comes before the first", minimum=0),
            evicted=field("boolean", "whether more of the prompt was in the cache once"),
            ahead=field(WHOLE, "answers that were under way when it was asked for", minimum=0),
            beside_tokens=field(WHOLE, "of other answers, computed in the same steps", minimum=0),
            others_share=field([NUMBER, "null"], "of all processors, used by other programs; null: too short to tell"),
            idle_share=field([NUMBER, "null"], "of all processors, idle"),
            page_faults=field([WHOLE, "null"], "pages of the engine that a disk had to answer for", minimum=0),
            stopped_ms=field(NUMBER, "time that a limit of the container kept the engine from computing", minimum=0),
            hot_ms=field(NUMBER, "time that the processor was slowed down because it was hot", minimum=0),
        ),
        "type": ["object", "null"],
    },
}

_OF_A_TOKEN = {
    "token": field(TEXT, "its text; bytes that are none are spelled out"),
    "id": field([WHOLE, "null"], f"its id{_UNTOLD}"),
    "logprob": field([NUMBER, "null"], "ln of its probability, before temperature, penalties and bias"),
    "bytes": rows("its bytes, not always whole characters", field(WHOLE, "a byte")),
}
LOGPROB = record(
    "a token with --logprobs",
    **_OF_A_TOKEN,
    top=rows("the likeliest in its place, best first", record("a token", **_OF_A_TOKEN)),
)

RUN = record(
    "`run --json`", **COMPLETION, logprobs=rows("each token that came; absent without --logprobs", LOGPROB, True)
)

START = record("the model is loaded", type={"const": "start"})
PREFILL = record(
    "the prompt is being read",
    type={"const": "prefill"},
    done=field(WHOLE, "tokens read"),
    cached=field(WHOLE, "tokens that came from the cache"),
    total=field(WHOLE, "tokens of the prompt"),
)
TOKEN = record(
    "one token",
    type={"const": "token"},
    id=field([WHOLE, "null"], "its id; null for text that comes without a token of its own"),
    text=field(TEXT, "the text it completed, possibly none"),
    channel={"enum": ["answer", "thinking"], "description": "which text it belongs to"},
    logprob={**LOGPROB, "optional": True},
)
TOOL_CALL = record(
    "the next part of a call of a tool",
    type={"const": "tool_call"},
    index=field(WHOLE, "number of the call in this answer, from 0 on", minimum=0),
    id=field(TEXT, "its id"),
    name=field(TEXT, "the tool"),
    arguments=field(TEXT, "the next part of its arguments, a JSON object as text"),
    is_complete=field("boolean", "whether it ends here"),
)
TOOL_STARTED = record(
    "a call is being run: it was found right, and allowed; only with `--tools`",
    type={"const": "tool_started"},
    id=field(TEXT, "that of the call"),
)
TOOL_RESULT = record(
    "the result of a call, which the model is given; only with `--tools`",
    type={"const": "tool_result"},
    id=field(TEXT, "that of the call"),
    name=field(TEXT, "the tool"),
    text=field(TEXT, "the result, cut to what the model is given"),
    is_error=field("boolean", "whether the call failed, or was refused"),
    bytes=field(WHOLE, "of the whole result", minimum=0),
    cut=field(WHOLE, "of these, bytes that are not in the text", minimum=0),
    ms=field(NUMBER, "time that the tool took", minimum=0),
)
IMAGE = record(
    "an image of the prompt is being encoded; only with `--image`",
    type={"const": "image"},
    number=field(WHOLE, "of the image among those that have to be encoded, from 0 on", minimum=0),
    total=field(WHOLE, "how many those are", minimum=1),
    share=field(NUMBER, "how much of it is done, from 0 to 1", minimum=0, maximum=1),
)
LOOP = record(
    "the answer only repeats itself; at most once",
    type={"const": "loop"},
    period=field(WHOLE, "tokens that it repeats", minimum=1),
)
DONE = record("the end: the fields of run --json", type={"const": "done"}, **COMPLETION)

PERPLEXITY = record(
    "`perplexity --json`",
    model=field(TEXT, "name of the model"),
    ppl=field(NUMBER, "perplexity", exclusiveMinimum=0),
    ppl_stderr=field(NUMBER, "its standard error"),
    nll=field(NUMBER, "mean negative log-likelihood of a token, natural logarithm"),
    tokens=field(WHOLE, "tokens scored"),
    chunks=field(WHOLE, "chunks scored"),
    ctx=field(WHOLE, "tokens of a chunk"),
    kv_codec=field(TEXT, "how the KV cache is stored"),
    seconds=field(NUMBER, "time it took"),
    kv_baseline=field(TEXT, "only with --kv-baseline: what it is compared with", optional=True),
    kld_mean=field(NUMBER, "only then: mean KL divergence from it, nats", minimum=0, optional=True),
    same_top1=field(NUMBER, "only then: share of tokens with the same first choice", optional=True),
)

MEMORY_PARTS = rows(
    "weights and KV cache",
    record(
        "a part",
        name=field(TEXT, "which"),
        predicted=field(WHOLE, "at most, as planned before the load"),
        measured=field(WHOLE, "taken after the last round"),
    ),
)
BENCH_COMPARE = record(
    "`bench --compare A B --json`: the second beside the first",
    sides=rows(
        "A and B",
        record(
            "one of the two",
            model=field(TEXT, "name"),
            precision=field(TEXT, "precision it is held in"),
            path=field(TEXT, "its file or folder"),
            backend=field(TEXT, "what computed it"),
            prefill_tps=field([NUMBER, "null"], "tokens per second, median of the rounds; null without -p"),
            decode_tps=field([NUMBER, "null"], "likewise; null without -n"),
            memory=MEMORY_PARTS,
        ),
    ),
    prefill_ratio=field([NUMBER, "null"], "B's rate by A's, median of rounds that ran in turn"),
    decode_ratio=field([NUMBER, "null"], "likewise"),
    words={
        **record(
            "what they say; null where their vocabularies differ",
            answer_tokens=field(WHOLE, "tokens of the greedy answers"),
            first_difference=field([WHOLE, "null"], "first of them that differs, from 0 on; null: none"),
            texts={"type": "array", "items": {"type": TEXT}, "description": "the answers from there on"},
            scored_tokens=field(WHOLE, "tokens of a text on which the rest is measured"),
            kld_mean=field(NUMBER, "mean KL divergence from A, nats"),
            same_top1=field(NUMBER, "share of tokens with the same first choice"),
        ),
        "type": ["object", "null"],
    },
)

BENCH = record(
    "`bench --json`",
    model=field(TEXT, "name of the model"),
    backend=field(TEXT, "what computed it"),
    threads=field(WHOLE, "threads; 0 for a server"),
    runs=rows(
        "one case each, in the order of the command line",
        record(
            "a case",
            kind={"enum": ["prefill", "decode"], "description": "reading a prompt, or writing an answer"},
            n=field(WHOLE, "tokens of a sequence"),
            depth=field(WHOLE, "tokens that were cached before"),
            batch=field(WHOLE, "sequences side by side"),
            tps_median=field(NUMBER, "tokens per second over all sequences, median of the rounds"),
            tps_best=field(NUMBER, "best round"),
            tps_all=rows("every round", field(NUMBER, "tokens per second")),
            percent_of_limit=field(
                [NUMBER, "null"], "of the read bandwidth (decode) or the int8 arithmetic (prefill) of this machine"
            ),
            diagnosis=field(TEXT, "what limits it and what helps; empty where unknown"),
            ttft_ms=field(NUMBER, "of a server: median time to the first token", optional=True),
        ),
    ),
    limits=field(
        ["object", "null"],
        "measured between the rounds: copy_gbps, read_gbps (10^9 bytes/s), int8_gmacs, bf16_gmacs (10^9/s)",
    ),
    weights_bytes=field(WHOLE, "weights as held in memory"),
    drafts=rows(
        "with --draft: answers with drafts beside the same answers without",
        record(
            "answers to a text",
            text={"enum": ["quoting", "prose"], "description": "a table to repeat, or a story to go on with"},
            n=field(WHOLE, "tokens of an answer"),
            tps=field(NUMBER, "tokens per second with drafts, median of the rounds"),
            plain_tps=field(NUMBER, "the same without"),
            drafted_tokens=field(WHOLE, "in all rounds"),
            accepted_tokens=field(WHOLE, "of these, part of the answer"),
        ),
        optional=True,
    ),
)

EXPLAIN = record(
    "`explain --json`",
    model=field(TEXT, "name of the model"),
    backend=field(TEXT, "what computed it"),
    topics=rows(
        "in the order they are shown",
        record(
            "a topic",
            topic=field(TEXT, "its name on the command line"),
            title=field(TEXT, "what it explains"),
            text=field(TEXT, "how it works, for a person"),
            figures=rows(
                "numbers beside their formulas",
                record(
                    "a number",
                    name=field(TEXT, "what it is"),
                    unit=field(TEXT, "tokens, bytes, ms, tok/s, %, x, nats or nothing"),
                    formula=field(TEXT, "what `expected` follows from; may be empty"),
                    expected=field([NUMBER, "null"], "by the formula"),
                    measured=field([NUMBER, "null"], "as found here"),
                    at_best=field("boolean", "`expected` is what the limits of the machine allow at best"),
                ),
            ),
            pictures=rows(
                "bars (`values` by name) and curves (`lines` by name, over `x`)", field("object", "a picture")
            ),
            conclusion=field(TEXT, "what follows, and what to do"),
            correction=field(TEXT, "of a rounded number that is often quoted; empty where there is none"),
        ),
    ),
)

IMAGES = {
    **record(
        "images, where the model sees them in main memory; else null",
        tower_bytes=field(WHOLE, "weights of the half that sees, in memory from the first image on"),
        room_bytes=field(WHOLE, "that a load keeps free for images: these, the encoding of one, and encoded images"),
        tokens=counts(WHOLE, "tokens of an image, by its width and height in pixels"),
        projector=field([TEXT, "null"], "file through which a GGUF sees (mmproj)"),
        projector_bytes=field([WHOLE, "null"], "before a download: its size"),
    ),
    "type": ["object", "null"],
}

SHOW = record(
    "`show --json`; null where the file does not say, or the architecture is not known",
    name=field(TEXT, "name of the model"),
    path=field([TEXT, "null"], "where it is; null before a download"),
    format={"enum": ["gguf", "safetensors"], "description": "container"},
    precision=field(TEXT, "as in its name, or the commonest type in the file"),
    bytes=field([WHOLE, "null"], "size on disk"),
    arch=field([TEXT, "null"], "architecture as the file names it"),
    n_params=field([WHOLE, "null"], "parameters"),
    qtypes=counts(WHOLE, "tensors of each type"),
    layouts=counts(TEXT, "how the matrices of each type are held in memory on this machine"),
    layers=field([WHOLE, "null"], "layers"),
    n_heads=field([WHOLE, "null"], "query heads of a layer"),
    n_kv_heads=field([WHOLE, "null"], "key and value heads of a layer"),
    head_dim=field([WHOLE, "null"], "elements of a head"),
    hidden_size=field([WHOLE, "null"], "elements of a hidden state"),
    ffn_size=field([WHOLE, "null"], "elements inside the feed-forward part"),
    vocab_size=field([WHOLE, "null"], "tokens of the vocabulary"),
    max_context=field([WHOLE, "null"], "longest context it was made for, tokens"),
    sliding_window=field([WHOLE, "null"], "tokens its windowed layers see"),
    kv_bytes_per_token=field(["object", "null"], "KV cache a token, bytes, by codec"),
    state_bytes=field([WHOLE, "null"], "state of a chat's recurrent layers, bytes; null where there are none"),
    drafts=field(["string", "null"], "how the model drafts tokens by itself: mtp; null where it does not"),
    chat_template_sha256=field([TEXT, "null"], "SHA-256 of its chat template"),
    tokenizer=field([TEXT, "null"], "kind of tokenizer"),
    repo=field(TEXT, "before a download: the repository it would come from", optional=True),
    licence=field(TEXT, "before a download: its licence, as the hub or the catalogue says", optional=True),
    gated=field(["boolean", "null"], "before a download: whether the authors want a licence accepted", optional=True),
    note=field([TEXT, "null"], "before a download: what it is good for", optional=True),
    precisions={**counts(WHOLE, "before a download: bytes of each precision there is"), "optional": True},
    held_bytes=counts(WHOLE, "bytes of the weights of each precision once they are in memory"),
    mappable_bytes=counts(WHOLE, "of held_bytes, what may stay on disk where memory is short"),
    images=IMAGES,
    approximate=field("boolean", "before a download: sizes follow from the shape alone", optional=True),
    verdict=counts(TEXT, "of each precision: fits, tight, disk or no, with the free memory and a usual context"),
    obstacle=field([TEXT, "null"], "why this version cannot run it, and what can be run in its place"),
)

SHOW_ADAPTER = record(
    "`show --json` of an adapter (LoRA)",
    name=field(TEXT, "name of its file or folder"),
    path=field(TEXT, "where it is"),
    format={"enum": ["peft", "mlx", "gguf"], "description": "whose files"},
    bytes=field(WHOLE, "size of its matrices on disk"),
    arch=field([TEXT, "null"], "architecture it is for, where a GGUF says it"),
    base=field([TEXT, "null"], "model it was trained on, as it says"),
    ranks=rows("every rank of its matrices", field(WHOLE, "a rank")),
    scales=rows("every factor of its own", field(NUMBER, "a factor")),
    adapts=counts(WHOLE, "layers in which it changes each matrix"),
    sha256=field(TEXT, "SHA-256 of its files, one after the other"),
)

PULL = record(
    "`pull --json`",
    name=field(TEXT, "what it was asked for as"),
    repo=field(TEXT, "repository it came from"),
    precision=field(TEXT, "which precision"),
    path=field(TEXT, "the file (of a split model the first), or the folder"),
    bytes=field(WHOLE, "size of all its files"),
    fetched=field(WHOLE, "bytes that came over the network this time"),
    commit=field(TEXT, "commit of the repository"),
    default=field("boolean", "whether it is the default model now"),
)

SEARCH = rows(
    "`search --json`; null where the source does not say",
    record(
        "one model",
        name=field(TEXT, "what to call it"),
        repo=field(TEXT, "its repository"),
        source={"enum": ["catalogue", "hub"], "description": "who knows it"},
        n_params=field([WHOLE, "null"], "parameters"),
        max_context=field([WHOLE, "null"], "longest context, tokens"),
        licence=field(TEXT, "its licence"),
        downloads=field([WHOLE, "null"], "downloads of late, as the hub counts"),
        gated=field(["boolean", "null"], "whether the authors want a licence accepted"),
        thinking=field(["boolean", "null"], "whether it can think before it answers"),
        sees=field("boolean", "whether it sees images, as far as is known: with `pull --images`"),
        note=field(TEXT, "what it is good for, or its architecture"),
        verdict=field([TEXT, "null"], "fits, tight, disk or no, with the free memory; of the hub's models a guess"),
        obstacle=field([TEXT, "null"], "why this version cannot run it"),
        instead=field([TEXT, "null"], "the nearest model that can be run, where this one cannot"),
    ),
)

RM = record(
    "`rm --json`",
    model=field(TEXT, "what was asked for"),
    files=rows("what was removed", field(TEXT, "path")),
    freed=field(WHOLE, "bytes that are free now"),
    left=rows("what stays and why", field(TEXT, "a sentence")),
)

HANDOVER = record(
    "`handover --json`",
    checkpoint=field(TEXT, "repository of the safetensors that an engine loads"),
    weight_bytes=field(WHOLE, "of its weights"),
    approximate=field("boolean", "these follow from the shape alone"),
    gpus=field(WHOLE, "GPUs of a machine"),
    gpu_bytes=field(WHOLE, "memory of one"),
    nodes=field(WHOLE, "machines"),
    tensor_parallel=field(WHOLE, "GPUs that share a layer"),
    pipeline_parallel=field(WHOLE, "groups of them, each with its own layers"),
    parallel=field(WHOLE, "chats side by side"),
    rows=rows(
        "a row for each type of the KV cache; bytes are those of one GPU",
        record(
            "one row",
            kv_cache_dtype={"enum": ["auto", "fp8"], "description": "auto: bf16"},
            ctx=field(WHOLE, "context, tokens"),
            gpu_weight_bytes=field(WHOLE, "weights"),
            gpu_kv_bytes=field(WHOLE, "KV cache of all chats"),
            gpu_other_bytes=field(WHOLE, "what the engine takes beside them, an estimate"),
            gpu_total_bytes=field(WHOLE, "these together"),
            gpu_usable_bytes=field(WHOLE, "what the engine may take"),
            fits=field("boolean", "whether there is room"),
            max_ctx=field(WHOLE, "longest context that fits, tokens; 0 when none does"),
            est_decode_tps=field([NUMBER, "null"], "tokens per second of one chat, at most; null for unknown GPUs"),
            chosen=field("boolean", "whether the lines are for this row"),
        ),
    ),
    vllm=rows("lines that start vLLM, one a machine; none where there is no room", field(TEXT, "a line")),
    sglang=rows("the same for SGLang", field(TEXT, "a line")),
)

FIT = record(
    "`fit --json`",
    machine=record(
        "the machine that the table is about",
        total_bytes=field(WHOLE, "main memory of this machine"),
        available_bytes=field(WHOLE, "of it, free now"),
        budget_bytes=field(WHOLE, "what the rows have to fit: the free memory, or --memory"),
        what_if=field("boolean", "whether --memory named another machine"),
        read_gbps=field(NUMBER, "measured: GB/s read from memory"),
        gmacs=field(NUMBER, "measured: billions of multiply-adds a second, 8-bit where the native library computes"),
    ),
    rows=rows(
        "every precision × context × codec",
        record(
            "one row",
            precision=field(TEXT, "precision of the weights"),
            ctx=field(WHOLE, "context, tokens"),
            kv_codec=field(TEXT, "how the KV cache is stored"),
            weights_bytes=field(WHOLE, "weights as they are held in memory"),
            kv_bytes=field(WHOLE, "KV cache of all --parallel conversations"),
            file_bytes=field(WHOLE, "of the file; weights_bytes are as they are held in memory"),
            est_is_measured=field("boolean", "speeds rest on answers of models of this size here; else on its limits"),
            est_is_floor=field("boolean", "it may be faster: other programs computed while the machine was measured"),
            kept_kv_bytes=field(WHOLE, "beside total_bytes, what chats kept in memory may take of what is left over"),
            scratch_bytes=field(WHOLE, "working memory"),
            total_bytes=field(WHOLE, "these and the program itself"),
            budget_bytes=field(WHOLE, "what there is"),
            mapped_bytes=field(WHOLE, "of total_bytes, weights that a load would leave on disk, and need no memory"),
            adapter_bytes=field(WHOLE, "of weights_bytes, those of adapters (--lora)", minimum=0),
            verdict={
                "enum": ["fits", "tight", "disk", "no"],
                "description": "tight: only with everything else closed; disk: with weights that are read from disk",
            },
            max_ctx=field(WHOLE, "longest context that fits, tokens; 0 when none does"),
            max_sequences=field(WHOLE, "conversations of this context that fit side by side"),
            est_decode_tps=field(NUMBER, "expected tokens per second, from the measured speed of memory and disk"),
            est_ttft_ms=field(NUMBER, "expected time to first token of a prompt of 512 tokens"),
            approximate=field("boolean", "weights follow from the shape alone"),
            recommended=field("boolean", "whether this is the row to take"),
            images_fit=field(["boolean", "null"], "whether images have room beside it; null: the model sees none"),
        ),
    ),
    reason=field(TEXT, "why the recommended row is the one, or why none is"),
    backend=field([TEXT, "null"], "the backend that the table is about: the one that `auto` takes for this model"),
    elsewhere=field([TEXT, "null"], "why that is the CPU although there is a GPU"),
    handover=field(["object", "null"], "where memory is missing: `handover --json` on the fewest GPUs of 80 GiB"),
    images=IMAGES,
)

LIST = rows(
    "`list --json`",
    record(
        "one model in one precision",
        name=field(TEXT, "what to call it"),
        precision=field(TEXT, "which precision; empty where unknown"),
        path=field(TEXT, "the file (of a split model the first), or the folder"),
        bytes=field(WHOLE, "size on disk, all parts"),
        format={"enum": ["gguf", "safetensors"], "description": "container"},
        source={
            "enum": [source for source in get_args(Source) if source != "path"],
            "description": "shipped, localrun's folder, the Hugging Face cache, or another program's models",
        },
        last_used=field([TEXT, "null"], "UTC time of the last use"),
        obstacle=field([TEXT, "null"], "why this version cannot run it"),
        sees=field("boolean", "whether it sees images, through its own half that does or a projector beside it"),
    ),
)

_BACKEND = {
    "available": field("boolean", "whether --backend NAME works"),
    "reason": field(TEXT, "why not"),
    "summary": field(TEXT, "what computes there; empty where its name says it all"),
}
DOCTOR = record(
    "`doctor --json`",
    backends=record(
        "what can compute",
        reference=record("plain PyTorch on the CPU", **_BACKEND),
        cpu=record(
            "the native CPU library",
            **_BACKEND,
            isa=field([TEXT, "null"], "instruction set in use"),
            arithmetic=field([TEXT, "null"], "rounding of activations; int8:8/32: a scale for 32, a factor for 8"),
            isas=rows("instruction sets that work here", field(TEXT, "name")),
            library=field([TEXT, "null"], "path of the library"),
        ),
        cuda=record(
            "NVIDIA GPUs",
            **_BACKEND,
            device=field([TEXT, "null"], "the GPU"),
            arch=field([TEXT, "null"], "what its kernels are compiled for, as in sm_90"),
            driver=field([TEXT, "null"], "version of its driver"),
            driver_cuda=field([TEXT, "null"], "the newest CUDA its driver runs"),
        ),
        mps=record(
            "Apple GPUs",
            **_BACKEND,
            device=field([TEXT, "null"], "the chip"),
            family=field([TEXT, "null"], "the family of its GPU, as in Apple9"),
            macos=field([TEXT, "null"], "the version of macOS"),
        ),
    ),
    machine=record(
        "the machine",
        platform=field(TEXT, "operating system"),
        cpu=field(TEXT, "processor"),
        threads=field(WHOLE, "threads worth using"),
        memory=field(WHOLE, "bytes of memory"),
        memory_limit=field(TEXT, "what makes it less than the machine has; empty where nothing does"),
        read_gbps=field(NUMBER, "memory that all cores read in a second, GB"),
        gmacs=field(NUMBER, "8-bit multiply-adds a second, in units of 10^9"),
        measured_idle=field("boolean", "whether no other program computed while these were measured"),
        memory_available=field(WHOLE, "bytes of it free"),
        python=field(TEXT, "version"),
        torch=field(TEXT, "version"),
    ),
    model=record(
        "the default model",
        name=field(TEXT, "its name"),
        path=field([TEXT, "null"], "where it is"),
        template=field([TEXT, "null"], "state of its chat template"),
        elsewhere=field(TEXT, "why the CPU computes it although there is a GPU; empty where that is not so"),
    ),
    problems=rows("what is missing", record("one", what=field(TEXT, "what"), hint=field(TEXT, "what to do"))),
)


def _setting_kinds(key: str) -> list[str]:
    kinds = {str: TEXT, int: WHOLE, float: NUMBER, bool: "boolean", NoneType: "null"}
    declared = [kinds[kind] for kind in get_args(get_type_hints(Settings)[key])]
    return [TEXT, *declared] if key == "ctx" else declared  # or auto


CONFIG = record(
    "`config --json`: every setting, null where nothing is set; `config KEY --json`: that one",
    **{key: field(_setting_kinds(key), setting.help, optional=True) for key, setting in SETTINGS.items()},
)

HISTORY_LIST = rows(
    "`history list --json`, the chat last written to first",
    record(
        "one chat",
        id=field(TEXT, "its id"),
        title=field(TEXT, "given, or how its first message begins"),
        model=field(TEXT, "the model that answered last"),
        created=field(TEXT, "UTC, as 2026-01-31T12:00:00Z"),
        updated=field(TEXT, "UTC"),
        messages=field(WHOLE, "messages of all branches", minimum=0),
    ),
)

MESSAGE = record(
    "one message as models get it",
    role=field(TEXT, "system, user or assistant"),
    content=field(TEXT, "what was said"),
    reasoning_content=field(TEXT, "what the model thought before it", optional=True),
)

HISTORY_SHOW = record(
    "`history show --json` and `history export --json`",
    id=field(TEXT, "its id"),
    title=field(TEXT, "given, or how its first message begins"),
    model=field(TEXT, "the model that answered last"),
    created=field(TEXT, "UTC"),
    messages=rows("the selected branch", MESSAGE),
    head=field([TEXT, "null"], "id of its last message"),
    tree=rows(
        "every message of every branch",
        record(
            "one message",
            id=field(TEXT, "its id"),
            parent=field([TEXT, "null"], "the message it follows; null for a first one"),
            role=field(TEXT, "system, user or assistant"),
            content=field(TEXT, "what was said, with files as the model reads them"),
            parts=rows(
                "where there are files or images: each of them, and the text",
                record(
                    "one part",
                    type={"enum": ["text", "file", "image"], "description": "what it is"},
                    name=field(TEXT, "of a file or an image", optional=True),
                    text=field(TEXT, "what was typed, or what is in the file", optional=True),
                    sha256=field(TEXT, "that of an image's file, as it was attached", optional=True),
                    width=field(WHOLE, "of an image, in pixels", minimum=1, optional=True),
                    height=field(WHOLE, "of an image, in pixels", minimum=1, optional=True),
                    media_type=field(TEXT, "of an image, by the name of its file", optional=True),
                    most_rows=field(WHOLE, "tokens of an image at most, where they are not 1,024", optional=True),
                    file=field(TEXT, "an image in the folder beside FILE, with `history export`", optional=True),
                ),
            )
            | {"optional": True},
            thinking=field(TEXT, "what the model thought before it"),
            created=field(TEXT, "UTC"),
            interrupted=field("boolean", "whether the answer was stopped"),
            stats=field("object", "figures of an answer, named as those of run --json"),
        )
        | {"additionalProperties": True},  # fields of newer versions
    ),
)

HISTORY_SEARCH = rows(
    "`history search --json`, the newest message first",
    record(
        "one message that has all the words",
        chat=field(TEXT, "id of the chat"),
        message=field(TEXT, "id of the message; empty where the title has the words"),
        title=field(TEXT, "title of the chat"),
        snippet=field(TEXT, "the text around the first of the words"),
    ),
)

HISTORY_RM = rows("`history rm --json`: what was removed", field(TEXT, "id of a chat"))

MCP_SERVER = {
    "name": field(TEXT, "its name in mcp.json"),
    "enabled": field("boolean", "whether chats may have its tools"),
    "command": rows("the program that is the server, and its arguments; empty where it has a URL", field(TEXT, "word")),
    "url": field(TEXT, "its URL; empty where it is a program"),
    "env": rows("names of the variables that it is given", field(TEXT, "name")),
    "headers": rows("names of the headers that are sent to it", field(TEXT, "name")),
    "n_tools": field([WHOLE, "null"], "how many tools it had when it was last asked; null where that is not known"),
}
MCP_LIST = rows("`mcp list --json`, as in mcp.json", record("one server", **MCP_SERVER))
MCP_SHOW = record(
    "`mcp show --json`",
    **MCP_SERVER,
    tools=rows(
        "its tools",
        record(
            "one tool",
            name=field(TEXT, "its name"),
            description=field(TEXT, "what the server says about it"),
            parameters=field("object", "JSON Schema of its arguments"),
        ),
    ),
    problems=rows("tools that are left out, and why", field(TEXT, "sentence")),
)

HOST = {
    "name": field(TEXT, "what `--server` takes"),
    "url": field(TEXT, "its address"),
    "model": field([TEXT, "null"], "the model there that answers; null: the first that it lists"),
    "tokenizer": field([TEXT, "null"], "the model or folder on this disk that counts its prompts, where one was named"),
    "key_from": field([TEXT, "null"], "the environment variable, or endpoints.toml; null where it has no key"),
    "has_key": field("boolean", "whether there is a key now"),
}
HOST_LIST = rows("`host list --json`: servers that were added", record("one server", **HOST))
HOST_SHOW = record(
    "`host show --json`",
    **HOST,
    engine=field([TEXT, "null"], "the engine that it says it is; null where it names none we know"),
    version=field([TEXT, "null"], "that of the engine"),
    load={
        **record(
            "its load now, by its page of metrics; null where it shows none",
            running=field([WHOLE, "null"], "requests that are answered"),
            waiting=field([WHOLE, "null"], "requests that wait"),
            cache_used=field([NUMBER, "null"], "share of the KV cache in use"),
            cache_hits=field([NUMBER, "null"], "share of all prompt tokens so far that were in it"),
        ),
        "type": ["object", "null"],
    },
    models=rows(
        "models that it offers, of which the first 16 are asked for; null is what the server does not say",
        record(
            "one model",
            name=field(TEXT, "its name there"),
            ctx=field([WHOLE, "null"], "tokens of its context"),
            tokenizer=field([TEXT, "null"], "its kind or name"),
            abilities=record(
                "whether it takes or gives these",
                **{
                    name: field(["boolean", "null"], words)
                    for name, words in (
                        ("tools", "calls of tools"),
                        ("schemas", "answers that hold to a JSON schema"),
                        ("images", "images in messages"),
                        ("reasoning", "thoughts apart from the answer"),
                        ("logprobs", "logprobs of tokens"),
                        ("lora", "adapters"),
                        ("embeddings", "embeddings"),
                        ("priorities", "requests of people before those of programs"),
                    )
                },
            ),
        ),
    ),
)

CACHE_LIST = rows(
    "`cache list --json`: what is kept on disk of what was computed, the model used last first",
    record(
        "a model in one KV codec, computed in one way; its packed weights; or stored responses",
        model=field(TEXT, "its name; empty where an earlier version kept it, and for stored responses"),
        path=field(TEXT, "where it was"),
        precision=field(TEXT, "which of several"),
        kv_codec=field(TEXT, "how the KV cache is stored; empty for weights"),
        bytes=field(WHOLE, "on disk"),
        blocks=field(WHOLE, "files of up to 64 tokens; for weights one a matrix; for stored responses one each"),
        used=field(TEXT, "UTC, as 2026-01-31T12:00:00Z"),
        chats=rows(
            "the chat used last first",
            record(
                "a chat",
                chat=field(TEXT, "its id, or python for what localrun.LLM keeps"),
                title=field(TEXT, "its title; empty where there is no such chat"),
                program=field(TEXT, "whose conversation it is, where a program had it with the server"),
                bytes=field(WHOLE, "on disk"),
                shared_bytes=field(WHOLE, "of these, what other chats begin with, too"),
                used=field(TEXT, "UTC"),
            ),
        ),
    ),
)
CACHE_CLEAR = record("`cache clear --json`", freed=field(WHOLE, "bytes that were removed"))

SERVE = record(
    "`serve --jsonl`, once it listens",
    type={"const": "listening"},
    url=field(TEXT, "its address; empty for a Unix socket"),
    socket=field(TEXT, "path of the Unix socket; empty otherwise"),
)

TOP = record(
    "`top --json`: what the server does",
    model={
        "type": ["object", "null"],
        "description": "the loaded model: name, precision, ctx; null while there is none",
    },
    attached=rows(
        "localruns that use its engine",
        record(
            "one of them",
            name=field(TEXT, "the command, or the app"),
            pid=field([WHOLE, "null"], "its process"),
            since=field(NUMBER, "when it came, in seconds since 1970"),
        ),
    ),
    requests=rows(
        "requests under way, the oldest first",
        record(
            "one request",
            number=field(WHOLE, "counts from 1 in each server"),
            client=field(TEXT, "what it calls itself"),
            protocol=field(TEXT, "the address that it asked"),
            model=field(TEXT, "the model that answers, or is to"),
            session=field(TEXT, "the conversation, as the client names it"),
            phase=field(TEXT, "waiting for the model, queued, reading, writing, done"),
            waits_for=field(TEXT, "why it does not go on; empty while it does"),
            prompt_tokens=field(WHOLE, "of the prompt; 0 until it is known"),
            cached_tokens=field(WHOLE, "of these, in the cache"),
            read_tokens=field(WHOLE, "of these, computed or cached so far"),
            written_tokens=field(WHOLE, "of the answer so far"),
            rate=field([NUMBER, "null"], "tokens per second of what it does now"),
            seconds=field(NUMBER, "since it was asked"),
            seconds_left=field([NUMBER, "null"], "of reading, or of an answer with a longest length"),
        ),
    ),
)

ERROR = record(
    "on stdout when a command with --json or --jsonl fails; of --jsonl it is the last line",
    error=record(
        "what happened",
        code=field(WHOLE, "the exit code"),
        kind=field(TEXT, "its name: usage, not_found, does_not_fit, prompt_too_long, bad_model_file, hub, engine …"),
        message=field(TEXT, "what happened"),
        hint=field(TEXT, "what to try"),
    ),
)

SCHEMAS: dict[str, Schema] = {
    "run": RUN,
    "jsonl: start": START,
    "jsonl: prefill": PREFILL,
    "jsonl: token": TOKEN,
    "jsonl: tool_call": TOOL_CALL,
    "jsonl: tool_started": TOOL_STARTED,
    "jsonl: tool_result": TOOL_RESULT,
    "jsonl: image": IMAGE,
    "jsonl: loop": LOOP,
    "jsonl: done": DONE,
    "serve": SERVE,
    "top": TOP,
    "perplexity": PERPLEXITY,
    "bench": BENCH,
    "bench --compare": BENCH_COMPARE,
    "explain": EXPLAIN,
    "show": SHOW,
    "show (adapter)": SHOW_ADAPTER,
    "list": LIST,
    "search": SEARCH,
    "fit": FIT,
    "handover": HANDOVER,
    "pull": PULL,
    "rm": RM,
    "doctor": DOCTOR,
    "config": CONFIG,
    "history list": HISTORY_LIST,
    "history show": HISTORY_SHOW,
    "history search": HISTORY_SEARCH,
    "history rm": HISTORY_RM,
    "host list": HOST_LIST,
    "host show": HOST_SHOW,
    "mcp list": MCP_LIST,
    "mcp show": MCP_SHOW,
    "cache list": CACHE_LIST,
    "cache clear": CACHE_CLEAR,
    "error": ERROR,
}


def check(value: Any, name: str) -> None:
    """Fails unless `value` has the shape of SCHEMAS[name]."""
    if error := jsonschema.exceptions.best_match(_validator(name).iter_errors(value)):
        raise error


@functools.cache
def _validator(name: str) -> Any:
    """Made once: checking the schema itself takes much longer than checking a value by it."""
    kind = jsonschema.validators.validator_for(SCHEMAS[name])
    kind.check_schema(SCHEMAS[name])
    return kind(SCHEMAS[name])
