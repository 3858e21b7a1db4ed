"""Policies for a chat that outgrows the context. Nothing is cut without telling the user."""

from collections.abc import Sequence

from localrun.base.dataclass import dataclass
from localrun.chat.conversation import Chat, Policy
from localrun.chat.tree import Message

SINK_TOKENS = 64  # the first block, which a rolling window always keeps
_STEP = 0.25  # share of the context that a drop frees at a time: after each, all that is left is read again
_BYTES_PER_TOKEN = 3  # of a message that was not counted yet: rather too few
_LONGEST_EXPECTED = 8192  # tokens of an answer, thoughts included, without a set length

POLICIES: dict[Policy, tuple[str, str]] = {
    "stop": ("Stop and ask", "nothing is dropped before you say so"),
    "drop": ("Drop the oldest", "the model no longer sees them; a line says where"),
    "roll": ("Roll on", "the model keeps the very beginning and the latest part"),
}


@dataclass(frozen=True, slots=True)
class OverflowPlan:
    """The part of a chat that the model sees. Counts are tokens, exact as far as the given sizes are.

    `horizon` is the first message that it sees completely; None while it sees everything. `fits`: an answer can begin.
    """

    fits: bool
    total: int
    n_hidden: int = 0
    n_turns: int = 0  # dropped, or out of sight
    horizon: str | None = None
    is_middle: bool = False  # the very beginning is still seen, and some turns in part

    def __str__(self) -> str:
        """Describe the plan to the user; empty while the model sees everything."""
        if not self.n_hidden:
            return ""
        n_turns = self.n_turns - (self.horizon is None)  # the last one is seen in part
        turns = "the oldest turn" if n_turns == 1 else f"the {n_turns} oldest turns" if n_turns > 0 else ""
        turns = "the middle of the chat" if turns and self.is_middle else turns
        rest = "" if self.horizon else "a part of the last message"
        hidden = " and ".join(filter(None, (turns, rest))) or "a part"
        return f"the model no longer sees {hidden} ({self.n_hidden:,} of {self.total:,} tokens)"


def plan_overflow(
    messages: Sequence[Message],
    sizes: Sequence[int],
    ctx: int,
    policy: Policy,
    *,
    system: int = 0,
    reserve: int = 1,
) -> OverflowPlan:
    """Plan how `messages`, a branch without system text, fit into the context.

    `sizes` are the tokens of each rendered message, `system` tokens before them always stay, and `reserve` are left for
    the answer. The last turn always stays.
    """
    total = system + sum(sizes)
    if total + reserve <= ctx:
        return OverflowPlan(True, total)
    if policy == "roll":
        return _roll(messages, sizes, ctx - reserve, system, total)
    if policy == "drop":
        return _drop(messages, sizes, ctx - reserve, total)
    return OverflowPlan(False, total)


def reserve_of(ctx: int, max_tokens: int | None = None) -> int:
    """Tokens to keep free for an answer when turns are dropped.

    At most a quarter of the context, and at most the longest answer that is allowed or likely.
    """
    return min(ctx // 4, max_tokens or _LONGEST_EXPECTED)


def plan_for(chat: Chat, question: str, ctx: int, policy: Policy, reserve: int, total: int = 0) -> OverflowPlan:
    """Plan the branch that ends at `question`, whose size is unknown.

    `total` tokens where they were counted; 0 estimates.
    """
    path = chat.tree.path(question)
    sizes = turn_sizes(path)
    sizes[-1] = max(total - sum(sizes[:-1]), 0) or sizes[-1] or _guess(path[-1])
    return plan_overflow(path, sizes, ctx, policy, reserve=reserve)


def drop_turn(chat: Chat, question: str) -> bool:
    """Drop the oldest turn that the model sees; False when only the last one is left."""
    following = next((message for message in chat.visible(question)[1:] if message.role == "user"), None)
    if following is not None:
        chat.set(horizon=following.id)
    return following is not None


def adopt(chat: Chat, policy: Policy, plan: OverflowPlan) -> None:
    """Set the chat's policy, and drop what the plan drops."""
    chat.set(policy=policy, **({"horizon": plan.horizon} if policy == "drop" and plan.horizon else {}))


def make_room(chat: Chat, question: str, ctx: int, reserve: int) -> OverflowPlan | None:
    """Drop turns before `question` is answered, where the policy is to drop and it is necessary; returns the plan."""
    path = chat.tree.path(question)
    if chat.policy != "drop" or not path:
        return None
    plan = plan_for(chat, question, ctx, "drop", reserve)
    places = {message.id: i for i, message in enumerate(path)}
    if plan.horizon is None or places[plan.horizon] <= places.get(chat.horizon or "", 0):
        return None
    chat.set(horizon=plan.horizon)
    return plan


def horizon_of(chat: Chat, ctx: int) -> str | None:
    """The first message of the selected branch that the model sees completely; None while it sees everything.

    `ctx` 0 means that the context is unknown: only dropped turns are out of sight.
    """
    path = chat.tree.path(chat.tree.head)
    if chat.policy == "roll" and ctx:
        return plan_overflow(path, turn_sizes(path), ctx, "roll").horizon
    return chat.horizon if any(message.id == chat.horizon for message in path) else None


def turn_sizes(messages: Sequence[Message]) -> list[int]:
    """Tokens of each message of a branch in a prompt, from the counts of its answers.

    The first includes the system text. The sum is exact, unless a drop lies between. A last question counts 0.
    """
    sizes = [0] * len(messages)
    before = 0  # tokens up to and with the last answer, as it is rendered later
    for i, message in enumerate(messages):
        prompt, answer = (message.stats.get(name) for name in ("prompt_tokens", "completion_tokens"))
        if message.role != "assistant" or not isinstance(prompt, int) or not isinstance(answer, int):
            continue
        sizes[i] = round(answer * len(message.text) / (len(message.text) + len(message.thinking) or 1))
        if i:
            sizes[i - 1] = prompt - before if prompt > before else _guess(messages[i - 1])
        before = prompt + sizes[i]
    return sizes


def _guess(message: Message) -> int:
    return len(message.text.encode(errors="replace")) // _BYTES_PER_TOKEN + 8


def _drop(messages: Sequence[Message], sizes: Sequence[int], limit: int, total: int) -> OverflowPlan:
    """Drop whole turns from the front, in steps: between two of them every prompt begins with the same message."""
    starts = [i for i, message in enumerate(messages) if message.role == "user"][1:]
    if not starts:
        return OverflowPlan(total <= limit, total)
    step = max(1, int(_STEP * limit))
    goal = -(-(total - limit) // step) * step
    last = next((n for n, start in enumerate(starts) if sum(sizes[:start]) >= goal), len(starts) - 1)
    hidden = sum(sizes[: starts[last]])
    return OverflowPlan(total - hidden <= limit, total, hidden, last + 1, messages[starts[last]].id)


def _roll(messages: Sequence[Message], sizes: Sequence[int], limit: int, system: int, total: int) -> OverflowPlan:
    """Keep the first block and the newest tokens in sight, whatever messages they belong to."""
    unseen_until = total - (limit - SINK_TOKENS)
    position, n_turns = system, 0
    for message, size in zip(messages, sizes, strict=True):
        if position >= unseen_until:
            return OverflowPlan(True, total, unseen_until - SINK_TOKENS, n_turns, message.id, is_middle=True)
        position += size
        n_turns += message.role == "user"
    return OverflowPlan(True, total, unseen_until - SINK_TOKENS, n_turns, is_middle=True)
