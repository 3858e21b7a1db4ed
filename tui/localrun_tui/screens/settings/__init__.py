"""The screen of settings, and remote models."""
