"""`headway web [VERB ...]`: the verbs as pages in a browser, on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headway.core import schema
from headway.core.listing import Listing
from headway.core.question import texts_of
from headway.report import output
from headway.web import link, server
from headway.web.questions import OWN_FIELDS


def _flags(question: Any) -> Iterator[tuple[str, str]]:
    """Flags of the page's verb that were given, by name."""
    flags = question.flags()
    for name, value in question.entries().items():
        if name not in OWN_FIELDS:
            yield from ((flags[name].word.removeprefix("--"), "on" if text is True else text) for text in texts_of(value))


def run(args: Any) -> output.Answer:
    """Serve until interrupted; with --link print the address."""
    state = link.state(list(args.page), list(_flags(args)))
    port = int(schema.scalar(args.port, args.flags()["port"].field, "--port"))
    if args.link:
        address = server.link(args.host, port, state)
        return output.Answer(Listing([]), output.Summary(address))
    server.serve(args.host, port, state, args.open)
    return output.Answer(Listing([]), output.Summary("headway web has ended."))
