"""The screen of models, and the menu of how to load one."""
