from localrun_testing.linux_only import emulator  # noqa: F401  (a fixture for every test below)
