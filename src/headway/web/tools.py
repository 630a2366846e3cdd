"""The verbs as tools of an assistant, by the Model Context Protocol: arguments from the declarations, answers by the JSON contract.

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
from headway.core.errors import HeadwayError, MissingExtra, UnknownName
from headway.core.question_schema import property_of
from headway.web import pages, permitted, size
from headway.web.question import PageQuestion, asked_by, flags_of, question

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
MORE_VERBS = tuple(verb for verb in permitted.VERBS if verb not in (*TOOL_VERBS, "score"))
MOST_ROWS = 20
INSTRUCTIONS = """headway computes latency, throughput, memory and cost of language models on chips; it measures nothing.
Numbers in `rows` are in SI: seconds, bytes, FLOP/s, tokens; `columns` says the unit and meaning of each key.
Arguments are texts as on the command line: 50ms, 8k, 3.35TB/s, lists 1,2,4 and ranges 1..512*2.
Times have floors (nothing is faster) and 90 % intervals (`_lo`, `_hi`); say them when you quote a time.
`command` asks the same at a terminal; a row with `fits` false says in `why` what does not fit."""


def sentences() -> dict[str, str]:
    """Every tool with what it answers."""
    return {PREFIX + verb: text for verb, text in TOOL_VERBS.items()} | {ANY: "Any other verb: " + ", ".join(MORE_VERBS) + "."}


def schema(name: str) -> dict[str, Any]:
    """JSON schema of a tool's arguments, from the declarations of its verb."""
    if name == ANY:
        properties: dict[str, Any] = {
            "verb": {"type": "string", "enum": list(MORE_VERBS), "description": "the verb, as in `headway --help`"},
            "words": {"type": "array", "items": {"type": "string"}, "description": "its subjects, in order"},
            "flags": {"type": "object", "description": 'its flags without dashes, such as {"on": "8xh100-sxm"}'},
        }
        return {"type": "object", "properties": properties, "required": ["verb"], "additionalProperties": False}
    properties, required = {}, []
    for word, flag in flags_of(asked_by(_verb(name), [])).items():
        if permitted.kind_of(flag) is not None and not flag.field.rare:
            key = word.replace("-", "_")
            properties[key] = property_of(flag) | {"description": help_of(flag).replace("%%", "%") or pages.label(word)}
            required += [key] if flag.is_required or flag.field.place == "+" else []
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _verb(name: str) -> str:
    verb = name.removeprefix(PREFIX)
    if verb not in TOOL_VERBS:
        raise UnknownName("tool", name, sentences(), "one of " + ", ".join(sentences()))
    return verb


def tool_question(name: str, arguments: dict[str, Any]) -> PageQuestion:
    """The question of a tool call, checked as one of a page is."""
    if name == ANY:
        unknown = set(arguments) - {"verb", "words", "flags"}
        if unknown:
            raise UnknownName("argument", min(unknown), ("verb", "words", "flags"))
        if arguments.get("verb") not in MORE_VERBS:
            raise UnknownName("verb", str(arguments.get("verb"))[:60], MORE_VERBS, "one of " + ", ".join(MORE_VERBS))
        return question({"verb": arguments["verb"], "words": arguments.get("words") or [], "flags": arguments.get("flags") or {}})
    verb = _verb(name)
    known = schema(name)["properties"]
    for key in arguments:
        if key not in known:
            raise UnknownName(f"argument of {name}", key, known)
    controls = [control for group in pages.verb(verb)["groups"] for control in group["controls"]]
    subjects = [control["name"] for control in controls if not control["flag"]]
    words: list[str] = []
    for subject in subjects:
        value = arguments.get(subject)
        words += value if isinstance(value, list) else [] if value is None else [value]
    flags = {key.replace("_", "-"): value for key, value in arguments.items() if key not in subjects}
    return question({"verb": verb, "words": words, "flags": flags})


def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer of a tool by the JSON contract, with at most MOST_ROWS rows."""
    checked = tool_question(name, arguments)
    size.check(checked)
    document = json.loads(command(shlex.join(checked.argv())).to_json())
    rows = document["rows"]
    if len(rows) > MOST_ROWS:
        document["rows"] = rows[:MOST_ROWS]
        document["notes"] = [*document["notes"], f"{len(rows) - MOST_ROWS} more rows: ask for fewer, or run the command"]
    return document


def serve() -> None:
    """Serve on standard input and output until the assistant leaves."""
    try:
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise MissingExtra("headway mcp", "mcp") from None
    server = Server("headway", version=__version__, instructions=INSTRUCTIONS, on_list_tools=_list_tools, on_call_tool=_call_tool)

    async def run() -> None:
        async with stdio_server() as (inward, outward):
            await server.run(inward, outward, server.create_initialization_options())

    asyncio.run(run())


async def _list_tools(_: Any, __: Any) -> Any:
    from mcp.types import ListToolsResult, Tool, ToolAnnotations

    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    return ListToolsResult(
        tools=[Tool(name=name, description=text, input_schema=schema(name), annotations=hints) for name, text in sentences().items()]
    )


async def _call_tool(_: Any, call: Any) -> Any:
    from mcp.types import CallToolResult, TextContent

    try:
        document = await asyncio.to_thread(answer, call.name, dict(call.arguments or {}))
    except HeadwayError as error:
        return CallToolResult(content=[TextContent(type="text", text=" ".join(str(error).split()))], is_error=True)
    except Exception as error:  # a bug: told to the assistant in one line, and the server stays
        return CallToolResult(content=[TextContent(type="text", text=f"internal error ({type(error).__name__}: {error})")], is_error=True)
    text = json.dumps(document, allow_nan=False)
    content: list[Any] = [TextContent(type="text", text=document["answer"]), TextContent(type="text", text=text)]
    return CallToolResult(content=content, structured_content=document)
