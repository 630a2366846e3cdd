"""The verbs in a browser and for assistants: `headway web` and `headway mcp`. No arithmetic here, and none in the page.

Holds        verb, mcp_verb and questions (the two verbs); server, app, guard, connections, turns, desk and worker (addresses, routes,
             who may ask, how long and in which order, worker processes and what they do); question, permitted, body and size (what a
             request may ask); reply, picture, follow and single_file (answers for a page); pages, link, board and drawing (what the
             pages ask, the lecture on the blackboard); bundle (Vega); tools (for assistants); static (the page itself).
Import       link.state, question.question, reply.reply, tools.answer.
May import   every package below. Its users: none (`QUESTIONS` of the root names its two verbs).
Reads        web/.
"""
