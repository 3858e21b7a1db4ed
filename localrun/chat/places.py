"""Words in one chat: which of its messages have them."""

from collections.abc import Iterable

from localrun.chat.search import folded, matches
from localrun.chat.tree import Message


def places(messages: Iterable[Message], words: str) -> list[str]:
    """Ids of the messages in which every word begins a word, as in the search over all chats."""
    phrases = [phrase for word in words.split() if (phrase := folded(word))]
    return [message.id for message in messages if phrases and matches(message.text, phrases)]
