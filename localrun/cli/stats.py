"""The lines of --stats about an answer."""

from localrun.base.device_figures import DeviceFigures
from localrun.base.events import Completion
from localrun.base.units import gib, ms, tps
from localrun.cli.console import note
from localrun.diagnose.diagnosis import diagnose
from localrun.diagnose.draft_words import draft_words
from localrun.diagnose.facts import facts_of
from localrun.diagnose.server_words import time_words
from localrun.diagnose.words import in_words
from localrun.fit.machine_rates import known_rates


def show_stats(completion: Completion) -> None:
    """Show speed and memory of the answer on stderr; for the answer of a server, the figures that it sends."""
    c, memory = completion, completion.memory
    note("\n".join((_prompt_line(c), _answer_line(c), _model_line(c))))
    if c.seen.images:
        encoded = f", encoded in {ms(c.seen.encode_ms)}" if c.seen.encode_ms else ", encoded before"
        note(f"images  {c.seen.images}: {c.seen.image_tokens:,} of the prompt's tokens{encoded}")
    if drafts := draft_words(c.flat()):
        note(f"drafts  {drafts}")
    for line in device_lines(c.device):
        note(line)
    if memory.peak_rss is not None:
        note(
            f"memory  {gib(memory.peak_rss)} at most; KV cache as {c.kv_codec}: {gib(memory.kv_bytes or 0)} of this"
            f" chat, {gib(memory.kept_kv_bytes or 0)} of others, {gib(memory.kv_budget_bytes or 0)} may be taken"
        )
    if c.engine == "remote":
        for line in time_words(c.flat()):
            note(f"server  {line}")
    note(f"seed    {c.seed}")
    facts = facts_of(c.flat(), known_rates())
    found = diagnose(facts) if facts else None
    if facts and found and found.cause != "unknown":
        note(f"limit   {in_words(found, facts).line}")


def _prompt_line(c: Completion) -> str:
    cached = "" if c.cached_tokens is None else f", {c.cached_tokens} of them cached"
    speed = "" if c.timings.prefill_tps is None else f", {tps(c.timings.prefill_tps)}"
    return f"prompt  {'?' if c.prompt_tokens is None else c.prompt_tokens} tokens{cached}{speed}"


def _answer_line(c: Completion) -> str:
    times = c.timings
    speed = "" if times.decode_tps is None else f", {tps(times.decode_tps)}"
    usual = f"every {ms(times.itl_ms_p50)} (95 %: {ms(times.itl_ms_p95)})"
    if c.drafts.accepted_tokens:  # several come at once: most take no time at all
        usual = f"every {ms(times.decode_ms / (c.completion_tokens - 1))} on average"
    return f"answer  {c.completion_tokens} tokens{speed}, first after {ms(times.ttft_ms)}, then {usual}"


def _model_line(c: Completion) -> str:
    model = " ".join(filter(None, (c.model, c.precision)))
    context = f", context {c.ctx}" if c.ctx else ""
    return f"model   {model} on {c.backend}{context}, loaded in {ms(c.timings.load_ms)}"


def device_lines(device: DeviceFigures) -> list[str]:
    """How a GPU began the steps of an answer; nothing of a processor."""
    lines = []
    if device.steps_ahead:
        lines.append(
            f"ahead   {device.steps_ahead_used:,} of {device.steps_ahead:,} steps begun before their token was known"
            " were right"
        )
    if device.steps_without_room:
        lines.append(
            f"graphs  {device.steps_without_room:,} steps were launched kernel by kernel, which is slower: the GPU's"
            " memory has no room for their graph; a shorter context (--ctx) leaves some"
        )
    return lines
