"""Markdown as it streams in, laid out for a terminal."""
