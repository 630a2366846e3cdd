"""The lab's page: it begins when told to, fills its curve in as points arrive, and leaves no process behind when it is stopped."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from headway.web import pages
from support.web_server import Visit

pytestmark = pytest.mark.slow  # a browser, and processes

SHORT = {"verb": "lab", "words": ["trains"], "flags": {"step": "1ms+0.1ms", "every": "10ms", "limit": "16", "requests": "200"}}
WORDS = "&w=trains&step=1ms%2B0.1ms&every=10ms&limit=16&requests="


def events(address: str, question: dict[str, Any]) -> list[dict[str, Any]]:
    """All that a run streams."""
    body = json.dumps(question | {"client": "test"}).encode()
    request = urllib.request.Request(f"{address}/api/run", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as stream:
        return [json.loads(line.removeprefix(b"data: ")) for line in stream.read().split(b"\n\n") if line]


def measuring() -> set[int]:
    """Processes that measure an experiment for the worker of a page."""
    lines = subprocess.run(["ps", "-eo", "pid,sid,args"], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    rows = [line.split(None, 2) for line in lines]
    workers = {pid for pid, _, args in rows if "headway.web.worker" in args}
    return {int(pid) for pid, leader, args in rows if "headway.reality.lab.child" in args and leader in workers}


def alive() -> set[int]:
    """All processes."""
    return {int(pid) for pid in subprocess.run(["ps", "-eo", "pid"], capture_output=True, text=True, check=True).stdout.split()[1:]}


def wait_for(what: Callable[[], Any]) -> Any:
    """What holds within ten seconds, or as it is then."""
    for _ in range(100):
        if answer := what():
            return answer
        time.sleep(0.1)
    return what()


def test_run__draws_what_is_measured_before_its_answer(address: str) -> None:
    stream = events(address, SHORT)
    drafts = [message["draft"] for message in stream if "draft" in message]
    assert "answer" in stream[-1] and drafts
    assert "none is measured yet" in drafts[0]["answer"]  # the prediction stands before the first point
    rows, columns = stream[-1]["answer"]["table"]["rows"], [column["key"] for column in drafts[0]["table"]["columns"]]
    predicted = columns.index("predicted")
    assert [row[predicted]["text"] for row in drafts[0]["table"]["rows"]] == [
        row[[column["key"] for column in stream[-1]["answer"]["table"]["columns"]].index("predicted")]["text"] for row in rows
    ]  # fmt: skip


def test_page__asks_for_no_server_of_trains(address: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        events(address, {"verb": "lab", "words": ["trains"], "flags": {"serve": True}})
    assert caught.value.code == 403 and "use the command line" in caught.value.read().decode()


def test_every_experiment_has_a_view() -> None:
    from headway.reality.lab.catalogue import EXPERIMENTS

    page = next(page for page in pages.document() if page["name"] == "lab")
    assert {view["words"][0] for view in page["view"]} == set(EXPERIMENTS)
    assert all(view["waits"] for view in page["view"])


@pytest.mark.skipif(sys.platform == "win32", reason="ps")
def test_view__runs_when_told_to_and_stops_when_told_to(visit: Visit) -> None:
    page = visit.open(f"/lab?view=trains{WORDS}200")
    assert "Runs on the machine" in page.inner_text("#answer")
    page.get_by_role("button", name="Run it").click()
    page.locator("#answer", has_text="Requests wait").wait_for(timeout=30_000)
    page.wait_for_selector("button.begin", timeout=30_000)
    assert page.locator(".picture svg").count() == 1
    page = visit.open(f"/lab?view=trains{WORDS}4000")  # twenty seconds
    page.get_by_role("button", name="Run it").click()
    page.locator("#answer", has_text="none is measured yet").wait_for(timeout=60_000)
    page.locator("progress[max]").wait_for(timeout=60_000)
    running = wait_for(measuring)
    assert running
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_selector("button.begin")
    assert wait_for(lambda: not running & alive())
