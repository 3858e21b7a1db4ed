"""`localrun` and `python -m localrun`."""

import sys


def main() -> None:
    """Run the command line, or at once the app; Ctrl-C while it is being imported leaves as quietly as later."""
    try:
        from localrun.cli.open_app import begins_app, open_app

        if begins_app(sys.argv[1:]):
            sys.exit(open_app())
        from localrun.cli.app import run_command_line
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
