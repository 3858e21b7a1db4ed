"""Counts of each token in a text, kept up to date in the form that native code reads."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping


class TokenCounts(Mapping[int, int]):
    """Counts by token id, in the order of first appearance. `ids` and `counts` are int32 arrays side by side."""

    def __init__(self, token_ids: Iterable[int] = ()) -> None:
        found = Counter(token_ids)
        self.ids, self.counts = array("i", found), array("i", found.values())
        self._places = {token_id: place for place, token_id in enumerate(self.ids)}

    def add(self, token_id: int) -> None:
        place = self._places.setdefault(token_id, len(self.ids))
        if place == len(self.ids):
            self.ids.append(token_id)
            self.counts.append(0)
        self.counts[place] += 1

    def plus(self, token_ids: Iterable[int]) -> "TokenCounts":
        """A copy in which these are counted, too."""
        more = TokenCounts()
        more.ids, more.counts, more._places = self.ids[:], self.counts[:], dict(self._places)
        for token_id in token_ids:
            more.add(token_id)
        return more

    def __getitem__(self, token_id: int) -> int:
        return self.counts[self._places[token_id]]

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)
