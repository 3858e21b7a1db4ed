"""Questions that lie over a screen."""
