"""`plan --current`: the changes of the user's own layout say what their own commands print, and help as they say."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from headway.core.listing import format_value
from support.command import Cli

LOAD = "--prompt 4k --output 600 --ttft 1.5s --tpot 40ms"
CASES = [
    f"plan llama-3.3-70b --on 8xh100-sxm {LOAD} --current tp=4,batch=64",
    f"plan llama-3.3-70b --on 8xh100-sxm {LOAD} --current tp=2,pp=4,batch=64 --engine vllm",
    f"plan llama-3.3-70b --on h100-sxm {LOAD} --rate 12 --no-check --current tp=4,batch=64",
    "plan deepseek-v3 --on gb200-nvl72 --prompt 2k --output 500 --tpot 50ms --current tp=8,ep=8,batch=64 --price-metric rental_3yr",
]


@pytest.mark.parametrize("command", CASES)
def test_current__each_change_is_what_its_command_prints(cli: Cli, command: str) -> None:
    answer = cli(f"{command} -o json")
    helps: list[dict[str, Any]] = answer.json["helps"]
    own = next(row for row in answer.rows if row["kind"] == "current")
    assert 1 <= len(helps) <= 5
    assert [change["gain"] for change in helps] == sorted((change["gain"] for change in helps), reverse=True)
    for change in helps:
        tried = re.search(r"try: headway (.*)", change["effect"])
        assert tried, change
        row = cli(f"{tried[1]} -o json").rows[0]
        assert f"TPOT {format_value(own['tpot_s'], 's')} -> {format_value(row['tpot_s'], 's')}" in change["effect"]
        assert shlex.split(change["change"])[0] in tried[1]
        speeds = own["tpot_s"] / row["tpot_s"], own["usd_per_mtok_out"] / row["usd_per_mtok_out"]
        assert change["gain"] == pytest.approx(speeds[0] * speeds[1] - 1, rel=1e-6)


def test_current__without_one_the_inputs_are_ranked(cli: Cli) -> None:
    helps = cli(f"plan llama-3.3-70b --on 8xh100-sxm {LOAD} -o json").json["helps"]
    assert any(change["change"].startswith("1 %") for change in helps)
    assert [change["gain"] for change in helps] == sorted((change["gain"] for change in helps), reverse=True)
