"""Answers to questions: a module per verb, whose `run` makes rows of the packages below and adds the words and pictures of report.

Holds        asked (a question to its Result, and the verbs as functions of Python), arguments (models, machines, loads and lists of inputs
             as written), no_effect (values that change nothing), a module for each verb; of cache, price and sim a second one or third.
Import       asked.result, asked.answered, asked.asking.
May import   report and every package below it. Its users: web, cli, `headway/__init__.py`.
Reads        no file of data/: the packages below do; files that the user names.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)
