"""What happens when a chat outgrows the context. Nothing is cut that the user was not told of."""

from collections.abc import Sequence
from dataclasses import dataclass

from localrun.chat.conversation import Policy
from localrun.chat.tree import Message

SINK_TOKENS = 64  # the first block, which a rolling window always keeps
_REFILL = 0.75  # share of the context that is filled after a drop: each drop means reading the rest again


@dataclass(frozen=True, slots=True)
class OverflowPlan:
    """What the model is shown of a chat. Counts are tokens, exact as far as the given sizes are.

    `horizon` is the first message it sees all of; None while it sees everything. `fits` is whether an answer can begin.
    """

    fits: bool
    total: int
    n_hidden: int = 0
    n_turns: int = 0  # dropped, or out of sight
    horizon: str | None = None

    def __str__(self) -> str:
        """For the user; empty while the model sees everything."""
        if not self.n_hidden:
            return ""
        turns = f"{self.n_turns} oldest {'turn' if self.n_turns == 1 else 'turns'}" if self.n_turns else "a part"
        return f"the model no longer sees the {turns} ({self.n_hidden:,} of {self.total:,} tokens)"


def plan_overflow(
    messages: Sequence[Message],
    sizes: Sequence[int],
    ctx: int,
    policy: Policy,
    *,
    system: int = 0,
    reserve: int = 1,
) -> OverflowPlan:
    """How to go on with `messages`, a branch without system text, whose rendered `sizes` in tokens are given.

    `system` tokens come before them and always stay; `reserve` are left for the answer. The last turn always stays.
    """
    total = system + sum(sizes)
    if total + reserve <= ctx:
        return OverflowPlan(True, total)
    if policy == "roll":
        return _roll(messages, sizes, ctx, system, total + reserve)
    if policy == "drop":
        return _drop(messages, sizes, ctx - reserve, system, total)
    return OverflowPlan(False, total)


def turn_sizes(messages: Sequence[Message]) -> list[int]:
    """Tokens of each message of a branch, from what its answers were counted to be. A turn's size stands at its
    question and is how much later prompts grew by it; 0 at answers. A last question that has no answer yet counts 0."""
    sizes = [0] * len(messages)
    prompts = [(i, size) for i, message in enumerate(messages) if (size := _prompt_tokens(message))]
    for number, (i, size) in enumerate(prompts):
        answer = messages[i].stats.get("completion_tokens")
        after = prompts[number + 1][1] if number + 1 < len(prompts) else 0
        before = prompts[number - 1][1] if number else 0
        whole = after - size if after > size else size - before + (answer if isinstance(answer, int) else 0)
        sizes[max(0, i - 1)] = max(0, whole)
    return sizes


def _prompt_tokens(message: Message) -> int:
    count = message.stats.get("prompt_tokens")
    return count if message.role == "assistant" and isinstance(count, int) else 0


def _drop(messages: Sequence[Message], sizes: Sequence[int], limit: int, system: int, total: int) -> OverflowPlan:
    """Whole turns from the front on, and some more than needed, so that the next turns need not drop again."""
    starts = [i for i, message in enumerate(messages) if message.role == "user"][1:]
    if not starts:
        return OverflowPlan(total <= limit, total)
    enough = (i for i, start in enumerate(starts) if total - sum(sizes[:start]) <= _REFILL * limit)
    last = next(enough, len(starts) - 1)
    hidden = sum(sizes[: starts[last]])
    return OverflowPlan(total - hidden <= limit, total, hidden, last + 1, messages[starts[last]].id)


def _roll(messages: Sequence[Message], sizes: Sequence[int], ctx: int, system: int, total: int) -> OverflowPlan:
    """The first block and the newest tokens stay in sight, whatever messages they belong to."""
    unseen_until = total - (ctx - SINK_TOKENS)
    position, n_turns = system, 0
    for message, size in zip(messages, sizes, strict=True):
        if position >= unseen_until:
            return OverflowPlan(True, total, unseen_until - SINK_TOKENS, n_turns, message.id)
        position += size
        n_turns += message.role == "user"
    return OverflowPlan(True, total, unseen_until - SINK_TOKENS, n_turns)
