"""The app: a Textual face of localrun. Only `localrun.cli` starts it."""
