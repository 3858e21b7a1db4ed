"""The name of a model on every screen."""

from textual.content import Content

from localrun_tui.widgets.columns import say


def model_name(name: str, precision: str = "", style: str = "bold") -> Content:
    """The title it has in the catalogue, else its name without its owner's, and behind it the precision."""
    from localrun.hub.catalogue import shown_name  # only here: it takes longer than the first frame may

    return say(shown_name(name), style) + say(f" {precision}" if precision else "")
