"""Helpers shared by the tests: oracles, tiny models, the CLI harness."""
