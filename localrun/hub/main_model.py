"""Of several models in one repository or folder, the one that is meant by its name."""

from collections.abc import Mapping, Sequence

from localrun.formats.helper_files import helper_beside_model
from localrun.hub.names import words_of


def main_model(repo: str, sizes: Mapping[str, Sequence[int]]) -> str:
    """The model that a repository is named after, else the one with the most precisions, else the largest; none that
    helps another. `sizes` are the bytes of each precision, by the name that its files share; empty where there is none.
    """

    def likeliness(model: str) -> tuple[bool, int, int, int]:
        words_apart = len(set(words_of(model)) ^ set(words_of(repo)))
        return not helper_beside_model(model, repo), -words_apart, len(sizes[model]), max(sizes[model])

    return max(sizes, key=likeliness, default="")
