"""`headway web [VERB ...]`: the verbs as pages in a browser, on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headway.cli.flag_use import pass_on
from headway.core import schema
from headway.core.listing import Listing
from headway.report import output

TAIL = ("where", "sort", "set", "attention", "kv_share", "strict", "mechanism", "embedding")  # of the runner, and of a page too
PAGE_FLAG = "page flag "  # before the name of a flag that is the page's, not this verb's


def add_flags_of(parser: Any, argv: Sequence[str]) -> None:
    """Own flags, and those of the verb whose page is wanted."""
    parser.add_argument(
        "page", nargs="*", metavar="PAGE|VERB", help="a page, or a command line to open: lecture RB-10, plan MODEL --on ..."
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to serve at (default 127.0.0.1: this machine alone)"
    )
    parser.add_argument("--port", default="8642", metavar="N", help="port; the next free one where it is taken (default 8642)")
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    parser.add_argument("--link", action="store_true", help="only print the link")
    from headway.web.permitted import VERBS

    words = [word for word in argv if not word.startswith("-")]
    if words and words[0] in VERBS:
        _add_flags_of_page(parser, words)


def _add_flags_of_page(parser: Any, words: list[str]) -> None:
    from headway.cli.verb import Parser, add_tail
    from headway.web.permitted import kind_of
    from headway.web.question import parser_of

    plain = Parser("web", "")
    add_tail(plain)
    group = parser.add_argument_group(f"flags of {words[0]}")
    for action in parser_of(words[0], words[1:])._actions:
        long = next((option for option in action.option_strings if option.startswith("--")), "")
        if not long or long in {*plain._option_string_actions, *parser._option_string_actions} or kind_of(action) is None:
            continue
        how: dict[str, Any] = {"action": "store_const", "const": ["on"]} if action.nargs == 0 else {"action": "extend", "nargs": "+"}
        if action.nargs != 0 and action.nargs != "+":
            how = {"action": "append"}
        group.add_argument(long, dest=PAGE_FLAG + long[2:], help=action.help, metavar=None if action.nargs == 0 else action.metavar, **how)


def _flags(args: Any) -> Iterator[tuple[str, str]]:
    """Flags of the page's verb that were given, by name."""
    for name, value in vars(args).items():
        if name.startswith(PAGE_FLAG):
            yield from ((name.removeprefix(PAGE_FLAG), text) for text in value or ())
    for name in TAIL:
        value = getattr(args, name)
        for text in value if isinstance(value, list) else [value] if value else []:
            yield {"mechanism": "as"}.get(name, name.replace("_", "-")), "on" if text is True else text


def run(args: Any) -> output.Answer:
    """Serve until interrupted; with --link print the address."""
    pass_on(args)
    from headway.web import link, server

    state = link.state(args.page, list(_flags(args)))
    port = int(schema.scalar(args.port, schema.Field(integer=True, low=0, high=65535, open_low=False), "--port"))
    if args.link:
        address = server.link(args.host, port, state)
        return output.Answer(Listing([]), output.Summary(address))
    server.serve(args.host, port, state, args.open)
    return output.Answer(Listing([]), output.Summary("headway web has ended."))
