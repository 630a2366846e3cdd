"""The command line: words read into the record of a question, the runner, and the answer printed. No arithmetic and no verb here.

Holds        entry (the script), main (verbs by group), parser (flags and help from the declarations of a question), verb (progress bar,
             printing the answer), command (a command line as a result of Python). Its modules load at first use.
Import       main.main, main.parsed, entry.entry, command.command, parser.Parser.
May import   every package below. Its users: web; `headway`, `python -m headway`.
Reads        no file of data/: the packages below do; files that the user names.
"""

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)
