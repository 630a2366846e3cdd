"""`headway web [VERB ...]`: the verbs as pages in a browser, on this machine, or the lecture's pages as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.core import schema
from headway.core.errors import BadValue, check_known
from headway.core.listing import Listing
from headway.evidence.lecture import chapters
from headway.report import output
from headway.web import server, stored_pages, verb


def run(args: Any) -> output.Answer:
    """Serve until interrupted; with --link print the address, with --static write the lecture's pages."""
    if args.static:
        return _stored(args)
    port = int(schema.scalar(args.port, args.flags()["port"].field, "--port"))
    if args.link:
        return output.Answer(Listing([]), output.Summary(server.link(args.host, port, verb.place_of(args))))
    server.serve(args.host, port, lambda: verb.place_of(args), args.open)
    return output.Answer(Listing([]), output.Summary("headway web has ended."))


def _stored(args: Any) -> output.Answer:
    """The lecture's pages, or those of the chapters that are named, as files."""
    labels, known = list(args.page[1:]), [chapter.label for chapter in chapters.chapters()]
    if args.page[:1] not in ((), ("lecture",), ("blackboard",)):
        raise BadValue("--static", args.page[0], "lecture, whose pages need no server, and chapters of it: web lecture 2 --static DIR")
    for label in labels:
        check_known("chapter", label, known)
    site = stored_pages.write(Path(args.static), labels)
    headline = f"{args.static}/index.html opens without a server: {site.chapters} chapters, {site.answers:,} answers, "
    return output.Answer(Listing([]), output.Summary(f"{headline}{site.size / 1e6:.1f} MB, {site.cpu_s:.0f} CPU-seconds."))
