"""`python -m headway`: the command without the console script."""

from headway.cli.main import entry

if __name__ == "__main__":
    entry()
