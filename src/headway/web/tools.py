"""`headway mcp`: the verbs as tools of an assistant, by the Model Context Protocol; arguments from the declarations, answers by the
JSON contract.

The protocol does not check arguments for us, so that they pass the same allow-list as those of a page: no path, no folder, no download.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import Any

from headway import __version__
from headway.cli.command import command
from headway.cli.parser import help_of
from headway.core.columns import Column
from headway.core.errors import HeadwayError, MissingExtra, UnknownName, check_known
from headway.core.listing import Listing
from headway.core.question_schema import property_of
from headway.report import output
from headway.web import pages, permitted
from headway.web.question import UPLOADS, PageQuestion, asked_by, check_size, flags_of, question

PREFIX = "headway_"
ANY = f"{PREFIX}run"
# What an assistant is asked most, each with when to take it; every other verb is behind ANY.
TOOL_VERBS = {
    "plan": "Which machines, layout and batch carry a load within latency limits, and what that costs. Takes seconds.",
    "serve": "Latency, throughput, memory and cost of a given model, machine and layout, over lists and ranges of inputs.",
    "sim": "Percentiles of latency under drawn traffic, by simulation. Takes seconds; plan first where no layout is given.",
    "train": "Days, memory, MFU and cost of a training run, and its best layout.",
    "price": "Cost per million tokens of a model on a machine; with sheet, what a price list tells of the model behind it.",
    "cache": "Which memory tier should hold a KV cache for how long.",
    "capacity": "What fits on a machine: chips, largest batch, longest context.",
    "compare": "Machines or models side by side, as ratios to the first.",
    "show": "The facts of one model, chip or system, with their sources.",
    "lecture": "The lecture behind headway: a chapter (1 to 7), a claim (RB-10), or a question in words.",
}
MORE_VERBS = tuple(verb for verb in permitted.VERBS if verb not in (*TOOL_VERBS, *UPLOADS))
MOST_ROWS = 20
INSTRUCTIONS = """headway computes latency, throughput, memory and cost of language models on chips; it measures nothing.
Numbers in `rows` are in SI: seconds, bytes, FLOP/s, tokens; `columns` says the unit and meaning of each key.
Arguments are texts as on the command line: 50ms, 8k, 3.35TB/s, lists 1,2,4 and ranges 1..512*2.
Times have floors (nothing is faster) and 90 % intervals (`_lo`, `_hi`); say them when you quote a time.
`command` asks the same at a terminal; a row with `fits` false says in `why` what does not fit."""


COLUMNS = {"tool": Column("", "name of the tool"), "answers": Column("", "what the tool answers")}
ARGUMENTS = {
    "verb": {"type": "string", "enum": list(MORE_VERBS), "description": "the verb, as in `headway --help`"},
    "words": {"type": "array", "items": {"type": "string"}, "description": "its subjects, in order"},
    "flags": {"type": "object", "description": 'its flags without dashes, such as {"on": "8xh100-sxm"}'},
}  # of ANY


def run(args: Any) -> output.Answer:
    """Serve until the assistant leaves; nothing but the protocol goes to standard output."""
    if args.list:
        rows = [{"tool": name, "answers": sentence} for name, sentence in sentences().items()]
        headline = f"{len(rows)} tools for an assistant; its settings take the command: headway mcp."
        return output.Answer(Listing(rows), output.Summary(headline), columns=COLUMNS)
    serve()
    return output.Answer(Listing([]), output.Summary(), document="\n")


def sentences() -> dict[str, str]:
    """Every tool with what it answers."""
    return {PREFIX + verb: text for verb, text in TOOL_VERBS.items()} | {ANY: "Any other verb: " + ", ".join(MORE_VERBS) + "."}


def schema(name: str) -> dict[str, Any]:
    """JSON schema of a tool's arguments, from the declarations of its verb."""
    if name == ANY:
        properties, required = ARGUMENTS, ["verb"]
    else:
        flags = flags_of(asked_by(_verb(name), []))
        usual = {word: flag for word, flag in flags.items() if permitted.kind_of(flag) and not flag.field.rare}
        about = {word: help_of(flag).replace("%%", "%") or pages.label(word) for word, flag in usual.items()}
        properties = {word.replace("-", "_"): property_of(flag) | {"description": about[word]} for word, flag in usual.items()}
        required = [word.replace("-", "_") for word, flag in usual.items() if flag.is_required or flag.field.place == "+"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _verb(name: str) -> str:
    verb = name.removeprefix(PREFIX)
    if verb not in TOOL_VERBS:
        check_known("tool", name, sentences())
    return verb


def tool_question(name: str, arguments: dict[str, Any]) -> PageQuestion:
    """The question of a tool call, checked as one of a page is."""
    if name == ANY:
        unknown = set(arguments) - set(ARGUMENTS)
        if unknown:
            raise UnknownName("argument", min(unknown), ARGUMENTS)
        check_known("verb", str(arguments.get("verb"))[:60], MORE_VERBS)
        return question({"verb": arguments["verb"], "words": arguments.get("words") or [], "flags": arguments.get("flags") or {}})
    verb, known = _verb(name), schema(name)["properties"]
    for key in arguments:
        if key not in known:
            raise UnknownName(f"argument of {name}", key, known)
    subjects = list(asked_by(verb, []).leading())
    words: list[str] = []
    for value in (arguments[subject] for subject in subjects if arguments.get(subject) is not None):
        words += value if isinstance(value, list) else [value]
    return question({"verb": verb, "words": words, "flags": {key.replace("_", "-"): value for key, value in arguments.items()
                                                             if key not in subjects}})  # fmt: skip


def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer of a tool by the JSON contract, with at most MOST_ROWS rows."""
    checked = tool_question(name, arguments)
    check_size(checked)
    document = json.loads(command(shlex.join(checked.argv())).to_json())
    rows = document["rows"]
    if len(rows) > MOST_ROWS:
        document["rows"] = rows[:MOST_ROWS]
        document["notes"] = [*document["notes"], f"{len(rows) - MOST_ROWS} more rows: ask for fewer, or run the command"]
    return document


def serve() -> None:
    """Serve on standard input and output until the assistant leaves."""
    try:
        from mcp import types
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise MissingExtra("headway mcp", "mcp") from None

    async def list_tools(_: Any, __: Any) -> Any:
        hints = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
        tools = sentences().items()
        return types.ListToolsResult(
            tools=[types.Tool(name=name, description=text, input_schema=schema(name), annotations=hints) for name, text in tools]
        )

    async def call_tool(_: Any, call: Any) -> Any:
        try:
            document = await asyncio.to_thread(answer, call.name, dict(call.arguments or {}))
        except Exception as error:  # a bug too is told to the assistant in one line, and the server stays
            line = str(error) if isinstance(error, HeadwayError) else f"internal error ({type(error).__name__}: {error})"
            return types.CallToolResult(content=[types.TextContent(type="text", text=" ".join(line.split()))], is_error=True)
        texts = (document["answer"], json.dumps(document, allow_nan=False))
        content: list[Any] = [types.TextContent(type="text", text=text) for text in texts]
        return types.CallToolResult(content=content, structured_content=document)

    server = Server("headway", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)

    async def run() -> None:
        async with stdio_server() as (inward, outward):
            await server.run(inward, outward, server.create_initialization_options())

    asyncio.run(run())
