"""The verbs in a browser and for assistants: `headway web` and `headway mcp`. No arithmetic here, and none in the page.

Holds        questions, run, verb and tools (the two verbs and what runs them); server, app, guard, turns, desk and worker (addresses,
             routes, who may ask, how long and in which order, worker processes and what they do); question and permitted (what a request
             may ask, and how much); reply and single_file (answers for a page); pages, board, drawings and stored_pages (what the pages
             ask, the lecture on the blackboard and as files); static (the page itself). Its modules load at first use.
Import       verb.state, question.question, reply.reply, tools.answer.
May import   every package below. Its users: none (`QUESTIONS` of the root names its two verbs).
Reads        web/.
"""

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)
