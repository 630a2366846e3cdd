"""Questions that serve: `web` to a browser, `mcp` to an assistant."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from headway import QUESTIONS
from headway.core.question import Question, field
from headway.web import permitted
from headway.web import question as asking


class Web(Question):
    """The verbs as pages in a browser, on this machine."""

    verb, answered_by = "web", "headway.web.run"
    example = "web lecture RB-10 --open"
    no_page = "it serves the page that you see"
    subjects = ("page",)
    page = field(
        kind="text", word="PAGE|VERB", place="*", help="a page, or a command line to open: lecture RB-10, plan MODEL --on ...", default=()
    )
    host = field(kind="secret", word="ADDRESS", help="address to serve at (default 127.0.0.1: this machine alone)", default="127.0.0.1")
    port = field(
        word="N", integer=True, low=0, high=65535, open_low=False, help="port; the next free one where it is taken (default 8642)",
        default="8642",
    )  # fmt: skip
    open = field(kind="switch", help="open it in the browser", default=False)
    link = field(kind="switch", help="only print the link", default=False)

    static = field(
        kind="output", word="DIR", help="write the lecture's pages there: they open without a server, with answers computed ahead"
    )

    def idle(self) -> Mapping[str, str]:
        """Where and how to serve says nothing of pages that are written."""
        names = [name for name in self.flags() if name not in ("page", "static")] if self.static else []
        return {**super().idle(), **dict.fromkeys(names, "headway web without --static")}

    @classmethod
    def of_words(cls, words: Sequence[str]) -> type[Question]:
        """The question with the flags of the verb whose page is wanted."""
        names = [word for word in words if not word.startswith("-")]
        if not names or names[0] not in QUESTIONS:
            return cls
        permitted.check_verb(names[0])
        return _page_of(names[0], tuple(names[1:]))


OWN_FIELDS = ("page", "host", "port", "open", "link", "static")


@functools.cache
def _page_of(verb: str, words: tuple[str, ...]) -> type[Question]:
    """The question about the page of a verb: each flag of the verb that a page may give, as typed."""
    known = {**Web.flags(), **dict.fromkeys(("format", "depth", "verbose"))}
    verb_flags = asking.flags_of(asking.asked_by(verb, words)).values()
    of_files = {flag.name for flag in verb_flags if flag.field.kind == "file" and verb in asking.UPLOADS}  # dropped there
    flags = [flag for flag in verb_flags if flag.spellings and (permitted.kind_of(flag) or flag.name in of_files)]
    kinds, usual = {name: Web.__annotations__[name] for name in OWN_FIELDS}, {name: getattr(Web, name) for name in OWN_FIELDS}
    for flag in (flag for flag in flags if flag.name not in known):
        takes = flag.field.takes if flag.field.takes or flag.field.is_switch else "again"
        kinds[flag.name] = Annotated[Any, dataclasses.replace(flag.field, takes=takes, rare=False)]
        usual[flag.name] = flag.default if flag.field.is_switch else ()
    return type("WebPage", (Web,), {"__annotations__": kinds, **usual, "groups": ()})


class Mcp(Question):
    """The verbs as tools of an assistant, over the Model Context Protocol."""

    verb, answered_by = "mcp", "headway.web.tools"
    example = "mcp --list"
    no_page = "it speaks to an assistant on standard input; `headway mcp --list` tells its tools"
    subjects = ()
    list = field(kind="switch", help="only list the tools", default=False)
