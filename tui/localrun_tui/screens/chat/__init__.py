"""The screen of a chat."""
