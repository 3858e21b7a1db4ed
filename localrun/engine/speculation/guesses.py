"""Guesses of a program beside lookups: when it is asked, and what that takes. No tensors."""

import time
from collections.abc import Sequence

from localrun.engine.generation import GenerationState
from localrun.engine.speculation.depth import Depths
from localrun.engine.speculation.drafter import DraftedTokens, GuessingProgram
from localrun.engine.step_plan import StepWork


def add_guesses(
    model: GuessingProgram,
    depths: Depths,
    decoding: Sequence[StepWork],
    drafts: Sequence[DraftedTokens],
    most: Sequence[int],
    rows: int,
) -> tuple[list[DraftedTokens], float]:
    """The same drafts, and guesses of a program where it is likelier to be right, `most` tokens of each; and the
    seconds of guessing and reading, which are recorded."""
    wanting = [
        index
        for index, work in enumerate(decoding)
        if most[index] > 0 and depths.prefers_guess(work.sequence, drafts[index])
    ]
    found, sequences = list(drafts), [decoding[index].sequence for index in wanting]
    rows_left = rows - sum([len(draft.tokens) for index, draft in enumerate(drafts) if index not in wanting])
    depth = min(max([most[index] for index in wanting], default=0), depths.wish(sequences, decoding, rows_left))
    if depth <= 0:
        return found, 0.0
    reading = sum([_read_on(model, depths, sequence) for sequence in sequences])
    if all(model.n_behind(sequence) for sequence in sequences):
        return found, reading
    started = time.perf_counter()
    guesses = model.draft(sequences, depth)
    seconds = time.perf_counter() - started
    depths.guessed(max(len(guess.tokens) for guess in guesses), seconds)
    for index, guess in zip(wanting, guesses, strict=True):
        if guess.tokens:
            found[index] = guess._replace(tokens=guess.tokens[: most[index]])
    return found, reading + seconds


def _read_on(model: GuessingProgram, depths: Depths, sequence: GenerationState) -> float:
    """Let a program read what it has to before it can draft, where that is worth it -> seconds: of an answer these are
    lost on drafts; a prompt is read once."""
    n_behind = model.n_behind(sequence)
    if not n_behind or not depths.worth_reading(sequence, n_behind):
        return 0.0
    started = time.perf_counter()
    n_read = model.catch_up(sequence)
    seconds = time.perf_counter() - started
    if n_read:
        depths.guessing.read(n_read, seconds)
    if sequence.n_generated >= n_behind:
        depths.lose(seconds)
    return seconds
