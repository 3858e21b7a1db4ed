"""`localrun` and `python -m localrun`."""

import sys


def main() -> None:
    from localrun.cli.app import run_command_line

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
