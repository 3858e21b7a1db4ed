"""Progress of encoding an image in words, for every face."""

from localrun.base.events import ImageProgress


def looking_words(progress: ImageProgress) -> str:
    """The image that is encoded, and how much of it is."""
    which = "the image" if progress.total == 1 else f"image {progress.number + 1} of {progress.total}"
    return f"looking at {which}: {progress.share:.0%}"
