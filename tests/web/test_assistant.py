"""`headway mcp` asked by the protocol's own client, over standard input and output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import jsonschema
import pytest

import headway as hw
from headway.web import permitted, tools
from headway.web.question import UPLOADS
from support.paths import ROOT

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")

SERVE = {"model": "llama-3.1-70b", "on": "8xh100-sxm", "tp": "8", "batch": "1,64", "context": "8k"}


def conversation(talk: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a conversation with a fresh server gives."""

    async def run() -> Any:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "headway", "mcp"], env=environment)
        async with mcp.Client(server) as client:
            return await talk(client)

    return anyio.run(run)


def test_tools__answer_by_the_contract() -> None:
    async def talk(client: Any) -> Any:
        return await client.list_tools(), await client.call_tool("headway_serve", SERVE)

    listed, result = conversation(talk)
    names = [tool.name for tool in listed.tools]
    assert names == list(tools.sentences()) and len(names) <= 12
    assert all(tool.annotations.read_only_hint and tool.description for tool in listed.tools)
    same = hw.serve("llama-3.1-70b", "8xh100-sxm", tp=8, batch="1,64", context="8k")
    expected = json.loads(same.to_json())
    assert not result.is_error
    assert result.structured_content == expected
    assert [part.text for part in result.content] == [expected["answer"], json.dumps(expected)]


def test_tools__a_mistake_is_an_answer_that_names_what_would_work() -> None:
    wrong = [
        ("headway_serve", SERVE | {"model": "/etc/passwd"}),
        ("headway_serve", SERVE | {"model": "llama-3.1-7b"}),
        ("headway_serve", SERVE | {"batch": ["1"]}),
        ("headway_serve", SERVE | {"batch": -7}),
        ("headway_serve", SERVE | {"batch": "1..1000000"}),
        ("headway_serve", SERVE | {"catalog": ["/etc"]}),
        ("headway_serve", SERVE | {"expert_load": "/etc/passwd"}),
        ("headway_serve", SERVE | {"plot": "x.png"}),
        ("headway_serve", {"model": "llama-3.1-70b"}),
        ("headway_plan", {"model": "llama-3.1-70b", "on": "8xh100-sxm", "trace": "/etc/passwd"}),
        ("headway_run", {"verb": "fit"}),
        ("headway_run", {"verb": "score", "words": ["x.csv"]}),
        ("headway_run", {"verb": "list", "words": ["chips"], "more": 1}),
        ("headway_nothing", {}),
    ]

    async def talk(client: Any) -> Any:
        results = [await client.call_tool(name, arguments) for name, arguments in wrong]
        return results, await client.call_tool("headway_run", {"verb": "list", "words": ["chips"]})

    results, after = conversation(talk)
    for (name, arguments), result in zip(wrong, results, strict=True):
        assert result.is_error, (name, arguments)
        assert "\n" not in result.content[0].text and "internal" not in result.content[0].text, result.content[0].text
    assert len(after.structured_content["rows"]) == tools.MOST_ROWS
    assert "more rows" in after.structured_content["notes"][-1]


def test_schemas__are_schemas_and_name_no_file() -> None:
    for name in tools.sentences():
        schema = tools.schema(name)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert not set(schema["properties"]) & {"catalog", "plot", "trace", "timeline", "plan", "expert_load", "workload", "out", "report"}
        assert all(part["description"] for part in schema["properties"].values())


def test_tools__reach_every_verb_of_a_page() -> None:
    assert {*tools.TOOL_VERBS, *tools.MORE_VERBS, *UPLOADS} == set(permitted.VERBS)
