"""Suggestions for a name that no model has: `llama3.2`, `qwen3-4`, `mistral:7b`, Ollama's tags.

A name is read as words: family, version, size, with any separators. Names with equal words are the same name; a name
whose words are all in another one is short for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from localrun.hub.catalogue import BUILTIN, read_catalogue
from localrun.hub.disk.stored import StoredModel
from localrun.hub.names import without_precision, words_of

MOST = 3
_USUAL = frozenset(("instruct", "it", "chat", "hf", "meta"))  # left out as often as not


def same_names(asked: str, names: Iterable[str]) -> list[str]:
    """Names that differ from `asked` only in case, separators, or `:latest`."""
    words = words_of(asked)
    return [name for name in dict.fromkeys(names) if words and words_of(name) == words]


def near_names(asked: str, stored: Sequence[StoredModel] = ()) -> list[str]:
    """Likely names, best first: of models on disk, else of the catalogue; else names with a similar spelling."""
    on_disk = {model.name: model.name for model in stored}
    catalogue = {name: f"{name} {model['title']}" for name, model in read_catalogue().items() if name != BUILTIN}
    found = [*_short_for(asked, on_disk), *_short_for(asked, catalogue)]
    if not found:
        names = (*catalogue, *on_disk)
        spelled = {key: name for name in names for key in (name.lower().rpartition("/")[2], name.lower())}
        found = [spelled[key] for key in get_close_matches(asked.lower()[:200], spelled, n=MOST, cutoff=0.5)]
    return list(dict.fromkeys(found))[:MOST]


def catalogue_name(asked: str) -> str:
    """The one name of the catalogue that differs only in case and separators; empty where there is none."""
    same = same_names(asked, (name for name in read_catalogue() if name != BUILTIN))
    return same[0] if len(same) == 1 and "/" not in asked else ""


def _short_for(asked: str, texts: Mapping[str, str]) -> list[str]:
    """Names whose text has every word of `asked`: whole words first, then those with the fewest others."""
    words = [word for word in words_of(without_precision(asked)) if word not in _USUAL]
    ranked: list[tuple[int, int, int, str]] = []
    for name, text in texts.items():
        of_name = dict.fromkeys(word for word in words_of(text) if word not in _USUAL)
        matches = [next((each for each in of_name if _means(word, each)), "") for word in words]
        if words and all(matches):
            ranked.append((sum(map(str.__ne__, words, matches)), len(of_name.keys() - set(matches)), len(ranked), name))
    return [name for *_, name in sorted(ranked)]


def _means(word: str, other: str) -> bool:
    """Whether a word equals another one or is short for it: 4 for 4b, 3 for 3.2."""
    return other in (word, f"{word}b") or (word.isdigit() and other.startswith(f"{word}."))
