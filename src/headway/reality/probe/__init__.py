"""A running server, asked gently: where it is, what it may cost, what it streams, what it says of itself, what follows.

Holds        address (the only place that anything is sent to), budget (never exceeded), prompts (unlike each other), http (one exchange,
             every size and time bounded), stream (events and their tokens), schedule (what is sent, before anything is), run (the
             requests), metrics (the server's own counts), observed (what the requests tell: figures by stage, step, limit, interval).
Import       run.run, schedule.schedule, address.server_address, observed.figures.
May import   laws, core. Its users: evidence (the question), answers, report.
Reads        data/server_metrics.csv (metrics.py).
"""
