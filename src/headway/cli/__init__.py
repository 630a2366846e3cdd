"""The command line: a module per verb, with flags from the schema and rows passed to report. No arithmetic here.

Holds        main (VERBS), verb (parser, progress bar, writing the answer), arguments (models, machines and loads as typed), and a module
             for each verb and for each mode of cache, price and lecture.
Import       main.main, main.entry.
May import   every package below. Its users: none (`headway` and `python -m headway`).
Reads        no file of data/: the packages below do; files that the user names.
"""
