"""The screen of downloads, and the downloads."""
