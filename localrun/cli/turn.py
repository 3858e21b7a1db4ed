"""One turn of a chat: the question is stored before it is answered, and the answer after that, even half."""

from collections.abc import Callable

from localrun.base.errors import LocalrunError, PromptTooLongError
from localrun.base.events import Completion, Done
from localrun.base.request import Request
from localrun.base.tool_events import TurnEvent
from localrun.chat.conversation import Chat, Policy
from localrun.chat.overflow import OverflowPlan, adopt, drop_turn
from localrun.chat.sight import unseen_words
from localrun.chat.too_long import TooLong, describe_too_long
from localrun.chat.tree import Message
from localrun.chat.turn import Answer, TurnOptions, begin_turn, continue_turn
from localrun.cli.console import note
from localrun.client.interface import EngineClient

Stream = Callable[[EngineClient, Request, Callable[[TurnEvent], None]], Done]


def answer_in(
    chat: Chat,
    question: str,
    client: EngineClient,
    options: TurnOptions,
    stream: Stream,
    ask: Callable[[TooLong], Policy] = lambda told: "stop",
    begun: Message | None = None,
) -> Done:
    """Answer a message of `chat`, or continue the answer `begun`, and store the answer.

    `ask` chooses a policy when the context is full. When there is no answer at all, the message stays in the chat on a
    branch of its own, and the error is raised.
    """
    ctx, sees = client.info.ctx, not client.info.why_blind
    if unseen := unseen_words(chat, question, client.info):
        note(f"({unseen})")
    while True:
        if begun is None:
            request, plan = begin_turn(chat, question, options, ctx, sees)
            _tell(plan)
        else:
            request = continue_turn(chat, begun, options, sees)
        answer = Answer(chat, question, request, client.info, begun)
        try:
            done = stream(client, request, answer.take)
            break
        except PromptTooLongError as error:
            told = describe_too_long(chat, question, client.info, error, options.max_tokens)
            if not _made_room(chat, question, told, ask):
                _take_back(chat, question)
                raise
        except BaseException as error:
            answer.error = error if isinstance(error, LocalrunError) else None
            if not answer.keep():
                _take_back(chat, question)
            raise
    c = done.completion
    if c.text or c.thinking or c.token_ids:
        answer.keep()
    else:  # stopped before the first word
        _take_back(chat, question)
    return done


def _take_back(chat: Chat, question: str) -> None:
    """Leave the message on a branch of its own: the chat goes on from before it."""
    chat.rewind(chat.tree[question].parent)


def _made_room(chat: Chat, question: str, told: TooLong, ask: Callable[[TooLong], Policy]) -> bool:
    """Follow the policy that `ask` chooses, or drop a turn where that is the policy; False where nothing gives way."""
    if chat.policy == "stop":
        policy = ask(told)
        if policy == "stop":
            return False
        adopt(chat, policy, told.plans[policy])
        _tell(told.plans[policy])
        return True
    return chat.policy == "drop" and _drop_one(chat, question)


def _tell(plan: OverflowPlan | None) -> None:
    """Note from which message on the model sees the chat."""
    if plan and plan.n_hidden:
        note(f"{plan}")


def _drop_one(chat: Chat, question: str) -> bool:
    """Drop the oldest turn where an estimate was too low; False when only the last turn is left."""
    dropped = drop_turn(chat, question)
    if dropped:
        note("the oldest turn was dropped: the model no longer sees it")
    return dropped


def reuse_line(c: Completion) -> str:
    """How much of the prompt was reused, and why not more; empty where unknown."""
    if c.cached_tokens is None or c.prompt_tokens is None:
        return ""
    why = f"; {c.cache.cache_note}" if c.cache.cache_note else ""
    return f"reused {c.cached_tokens:,} of {c.prompt_tokens:,} tokens{why}"
