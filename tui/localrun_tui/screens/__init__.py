"""The screens, a folder each where one is more than a file."""
