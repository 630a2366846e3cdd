"""`python -m headway`: the command without the console script."""

from headway.cli.entry import entry

if __name__ == "__main__":
    entry()
