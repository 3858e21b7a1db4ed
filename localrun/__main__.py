"""`localrun` and `python -m localrun`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported leaves as quietly as later."""
    try:
        from localrun.cli.app import run_command_line
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
