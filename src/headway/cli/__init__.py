"""The command line: a module per verb, with flags from the schema and rows passed to report. No arithmetic here.

Holds        entry (the script), main (VERBS), verb (parser, progress bar, writing the answer), arguments (models, machines and
             loads as typed), flag_use and no_effect (flags that would be ignored), a module for each verb and for each mode of cache,
             price and lecture, and functions/ (the verbs as functions of Python).
Import       main.main, entry.entry, functions.call.command, functions.serving.plan and the other public functions.
May import   every package below. Its users: none (`headway`, `python -m headway`, `import headway`).
Reads        no file of data/: the packages below do; files that the user names.
"""
