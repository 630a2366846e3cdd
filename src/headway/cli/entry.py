"""The console script: imports the rest inside a guard, so that an interrupt while it loads ends in one line."""

import sys


def entry() -> None:
    """Run a command and exit with its status."""
    try:
        from headway.cli.main import guarded

        status = guarded(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("headway: interrupted, with nothing to show\n")
        status = 130
    sys.exit(status)
