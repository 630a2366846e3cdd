"""A probe of servers on this machine: well-behaved ones, and hostile ones, whose own counts say whether the budget was kept."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from headway.core.errors import HeadwayError
from headway.reality.probe.address import Credentials, check, credentials, server_address
from headway.reality.probe.budget import Limits, Spending
from headway.reality.probe.http import ProbeTarget
from headway.reality.probe.metrics import load_of
from headway.reality.probe.run import ProbeRun, run
from headway.reality.probe.schedule import LOAD, schedule
from support.command import Cli
from support.fake_server import HEAD, KEY, FakeServer, StepLaw, event, running, whole
from support.hostile import KINDS, answers, never_ends, several_tokens

MOST = Limits(seconds=2.0, requests=40, tokens_in=3000, tokens_out=400)
SILENCE = 0.25
SLACK_S = 3.0  # that a server may see of a probe after its time, on a busy machine


def probed(server: FakeServer, most: Limits = MOST, secrets: Credentials | None = None) -> tuple[ProbeRun, Spending]:
    """A small probe of a server."""
    planned, _ = schedule((12, 40), 8, (1, 2, 4), most)
    address = server_address(server.url)
    return run(ProbeTarget(address=address, secrets=secrets or Credentials(), silence_s=SILENCE), planned, most, 7)


def check_budget(server: FakeServer, most: Limits) -> None:
    """The server's own counts are within the budget."""
    assert server.requests <= most.requests and server.tokens_in <= most.tokens_in and server.tokens_out <= most.tokens_out
    assert not server.last or server.last - server.begin <= most.seconds + SLACK_S


@pytest.mark.parametrize("name", sorted(KINDS))
def test_hostile__is_one_line_within_the_budget(name: str) -> None:
    behaviour, words = KINDS[name]
    secrets = Credentials(headers=(("Authorization", f"Bearer {KEY}"), ("X-Team", "team-secret")))
    with running(FakeServer(behaviour=behaviour)) as server:
        result, spending = probed(server, secrets=secrets)
    assert words in result.fault and "\n" not in result.fault and result.fault.isprintable() and len(result.fault) < 300
    assert KEY not in result.fault and "team-secret" not in result.fault
    check_budget(server, MOST)
    assert (spending.requests, server.requests) == (server.requests, spending.requests) or name == "is_gone_after_some"
    assert not any(asked.path.startswith("/evil") for asked in server.seen)


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        ("--requests", Limits(seconds=20, requests=30, tokens_in=10**5, tokens_out=10**5)),
        ("--tokens-in", Limits(seconds=20, requests=999, tokens_in=1200, tokens_out=10**5)),
        ("--tokens-out", Limits(seconds=20, requests=999, tokens_in=10**5, tokens_out=150)),
        ("--budget", Limits(seconds=0.4, requests=999, tokens_in=10**5, tokens_out=10**5)),
    ],
)
def test_budget__each_limit_ends_it_by_the_servers_own_count(limit: str, most: Limits) -> None:
    """With the schedule of a boundless budget, so that nothing but the spending keeps it."""
    planned, _ = schedule((12, 40), 8, (1, 2, 4, 8, 16), Limits(seconds=99, requests=10**6, tokens_in=10**9, tokens_out=10**9))
    with running(FakeServer(law=StepLaw(fixed=0.002))) as server:
        target = ProbeTarget(address=server_address(server.url), secrets=Credentials(), silence_s=SILENCE)
        result, spending = run(target, planned, most, 7)
    assert limit in result.stopped and not result.fault
    check_budget(server, most)
    assert spending.tokens_in >= server.tokens_in or limit == "--budget"


def test_well_behaved__is_counted_as_it_counts() -> None:
    with running(FakeServer(law=StepLaw(fixed=0.002), seats=2, metrics=True)) as server:
        result, spending = probed(server, Limits(seconds=20, requests=99, tokens_in=10**4, tokens_out=10**4))
    assert (result.fault, result.stopped) == ("", "") and result.protocol.model == "fake-model"
    assert (spending.requests, spending.tokens_in, spending.tokens_out) == (server.requests, server.tokens_in, server.tokens_out)
    assert result.before is not None and result.before.running == 0
    prompts = [asked.body["prompt"] for asked in server.seen if asked.method == "POST"]
    assert len({prompt.split()[0] for prompt in prompts}) == len(prompts)  # none begins as another does
    lengths = {run.stage.prompt: run.requests[0].prompt_tokens for run in result.of_kind(LOAD)}
    assert lengths[12] == pytest.approx(12, abs=2) and lengths[40] == pytest.approx(40, abs=6)


def test_streams__that_never_end_or_hold_several_tokens_are_measured() -> None:
    with running(FakeServer(behaviour=never_ends)) as server:
        result, _ = probed(server, Limits(seconds=20, requests=5, tokens_in=10**4, tokens_out=10**4))
        assert result.fault == "" and not any(request.is_ended for stage in result.stages for request in stage.requests)
    with running(FakeServer(behaviour=several_tokens)) as server:
        result, spending = probed(server, Limits(seconds=20, requests=50, tokens_in=10**4, tokens_out=10**4))
        requests = [request for stage in result.of_kind(LOAD) for request in stage.requests]
        assert all(len(request.times) * 4 == request.output_tokens for request in requests)
        check_budget(server, spending.most)


def test_rate_limit__that_is_short_is_waited_for() -> None:
    behaviour, _ = KINDS["limits_after_some"]
    with running(FakeServer(behaviour=behaviour)) as server:
        result, _ = probed(server)
    assert sum("waited" in note for note in result.notes) == 2 and len(result.stages) == 3


def test_endpoint__chat_where_there_are_no_completions() -> None:
    async def only_chat(server, asked, writer) -> None:
        behaviour = answers if asked.path == "/v1/chat/completions" else KINDS["no_such_path"][0]
        await behaviour(server, asked, writer)

    with running(FakeServer(behaviour=only_chat)) as server:
        result, _ = probed(server, Limits(seconds=20, requests=99, tokens_in=10**4, tokens_out=10**4))
    assert result.fault == "" and result.protocol.path == "/v1/chat/completions" and result.of_kind(LOAD)


def test_address__is_of_this_machine_unless_agreed() -> None:
    keys = Credentials(headers=(("Authorization", "Bearer x"),))
    for url in ("http://10.1.2.3:8000", "https://example.org", "http://localhost.example.org", "http://0.0.0.0:1"):
        with pytest.raises(HeadwayError, match="--yes-remote"):
            check(server_address(url), False, Credentials())
    with pytest.raises(HeadwayError, match="https"):
        check(server_address("http://10.1.2.3:8000"), True, keys)
    check(server_address("https://example.org"), True, keys)
    for url in ("http://user:pass@host", "http://host?key=1", "ftp://host", "http://", "http://h:99999999", "http://h/\r\nX: y"):
        with pytest.raises(HeadwayError) as error:
            server_address(url)
        assert "pass" not in str(error.value) and "key=1" not in str(error.value)


def test_credentials__wrong_ones_are_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_KEY", KEY + "\nX: y")
    for words in ((None, [f"Authorization {KEY}"]), (None, [f"X: {KEY}\r\nY: z"]), ("PROBE_KEY", []), (None, [f"Host: {KEY}"])):
        with pytest.raises(HeadwayError) as error:
            credentials(*words)
        assert KEY not in str(error.value)


@pytest.mark.parametrize("form", ["json", "text", "csv", "md"])
def test_command__keys_are_sent_and_stand_nowhere_else(form: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_KEY", KEY)
    with running(FakeServer(law=StepLaw(fixed=0.002))) as server:
        words = ["probe", server.url, "--prompt", "12", "--output", "4", "--concurrency", "1", "--api-key-env", "PROBE_KEY"]
        words += ["--header", "X-Team: team-secret", "--out", str(tmp_path / "p.json"), "-o", form, "--verbose"]
        answer = cli(*words)
    assert answer.status == 0, answer.err
    assert all(asked.headers["authorization"] == f"Bearer {KEY}" and asked.headers["x-team"] == "team-secret" for asked in server.seen)
    for text in (answer.out, answer.err, (tmp_path / "p.json").read_text()):
        assert KEY not in text and "team-secret" not in text


def test_command__ends_in_what_score_and_calibrate_say_of_its_file(cli: Cli, tmp_path: Path) -> None:
    facts = ["--on", "h100-sxm", "--model", "llama-3.1-8b"]
    with running(FakeServer(law=StepLaw(fixed=0.009, request=0.0002))) as server:
        words = ["probe", server.url, "--prompt", "32", "--output", "8", "--concurrency", "1,2", "--out", str(tmp_path / "p.json")]
        answer = cli(*words, *facts, "-o", "json")
        assert cli(*words, *facts).err.count("exists; nothing was sent") == 1 and answer.status == 0
    probed_json, scored = json.loads(answer.out), json.loads(cli("score", "--vllm", str(tmp_path / "p.json"), *facts, "-o", "json").out)
    assert (probed_json["binds"], probed_json["helps"]) == (scored["binds"], scored["helps"][:3])
    assert all("headway sim" in change["effect"] for change in probed_json["helps"]) and scored["answer"] in probed_json["notes"]
    assert any(note.startswith("calibrated: ") and "headway calibrate" in note for note in probed_json["notes"])


def test_metrics__names_of_every_engine() -> None:
    text = 'vllm:num_requests_running{e="0"} 2\nvllm:num_requests_running{e="1"} 3\nvllm:kv_cache_usage_perc{e="0"} 0.5\nother 7\n'
    load = load_of(text)
    assert load is not None and (load.engine, load.running, load.kv_used, load.waiting) == ("vLLM", 5, 0.5, None)
    assert load_of("sglang:num_queue_reqs 4\nsglang:num_running_reqs NaN\n") is not None
    assert load_of("<html>" * 1000) is None and load_of("llamacpp:requests_deferred oops") is None


def test_interrupt__keeps_what_was_measured(tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys

    with running(FakeServer(law=StepLaw(fixed=0.002, request=0.003))) as server:  # a slope that a busy machine does not hide
        words = ["probe", server.url, "--prompt", "12", "--output", "8", "--concurrency", "1..512*2", "--out", "p.json"]
        start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell starts its background without Ctrl-C
        code = f"{start}; from headway.cli.entry import entry; entry()"
        child = subprocess.Popen([sys.executable, "-c", code, *words], cwd=tmp_path, stdout=subprocess.PIPE, env=os.environ, text=True)
        while server.requests < 45 and child.poll() is None:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=20)
    assert child.returncode == 130 and "interrupted" in out and "A step takes" in out
    assert (tmp_path / "p.json").read_text().count("\n") >= 1


@pytest.mark.parametrize("name", ["KEY", "a\x1b[2Jb", "a\nb", "\ud800", "x" * 3_000_000, 7])
def test_models__a_name_that_cannot_be_printed_is_none(name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROBE_KEY", KEY)
    bad = f"Bearer {KEY}" if name == "KEY" else name
    words = ["--prompt", "12", "--output", "4", "--concurrency", "1", "--api-key-env", "PROBE_KEY", "--out", str(tmp_path / "p.json")]
    with running(FakeServer(law=StepLaw(fixed=0.001), models=[bad, "good"])) as server:
        answer = cli("probe", server.url, *words, "-o", "json")
    text = (tmp_path / "p.json").read_text()
    assert answer.status == 0 and json.loads(text.splitlines()[0])["model_id"] == "good"
    assert not any(KEY in part or "\x1b" in part or len(part) > 10**5 for part in (answer.out, answer.err, text))
    with running(FakeServer(models=["a\nb"])) as server:
        assert "--served-model" in probed(server)[0].fault and server.requests == 0


def test_address__what_may_hold_a_key_is_not_printed() -> None:
    for url in ("http:///user:pass@host", "http:/user:pass@host", "user:pass@host", "http://h#pass", "http://a..b", "http://h/\u4e16"):
        with pytest.raises(HeadwayError) as error:
            server_address(url)
        assert "pass" not in str(error.value)
    with pytest.raises(HeadwayError) as error:
        credentials(KEY, [])
    assert KEY not in str(error.value)


def test_file__is_checked_before_anything_is_sent(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "p.json")
    with running(FakeServer()) as server:
        for path in (tmp_path, tmp_path / "link"):
            assert "nothing was sent" in cli("probe", server.url, "--out", str(path), "--replace").err
    assert not server.seen


def test_file__that_fails_leaves_the_answer(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: object, text: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headway.answers.probe.write_whole", full)
    with running(FakeServer(law=StepLaw(fixed=0.001))) as server:
        words = ["--prompt", "12", "--output", "4", "--concurrency", "1", "--out", str(tmp_path / "p.json")]
        answer = cli("probe", server.url, *words)
    assert answer.status == 1 and "TTFT alone" in answer.out and "No space left" in answer.out + answer.err


def test_rate_limit__begins_the_stage_anew_for_all() -> None:
    """No request is sent while the server's wait lasts, and no answer of before it is in the stage."""
    posts: list[float] = []

    async def behaviour(server, asked, writer) -> None:
        posts.append(server.last)
        again = whole({}, "429 Too Many Requests", more="Retry-After: 1\r\n")
        await (server.say(writer, again) if server.requests == 36 else answers(server, asked, writer))

    most = Limits(seconds=20, requests=99, tokens_in=10**4, tokens_out=10**4)
    planned, _ = schedule((12,), 8, (1, 4), most)
    with running(FakeServer(behaviour=behaviour)) as server:
        result, _ = run(ProbeTarget(address=server_address(server.url), secrets=Credentials(), silence_s=5), planned, most, 7)
    assert not result.fault and [len(stage.requests) for stage in result.stages] == [stage.requests for stage in planned]
    assert not [at for at in posts[36:] if posts[35] + 0.1 < at < posts[35] + 0.9] and len(posts) > sum(stage.requests for stage in planned)
    assert sum(stage.failed for stage in result.stages) == 0


def test_fault__before_the_first_load_leaves_what_was_measured(cli: Cli, tmp_path: Path) -> None:
    async def behaviour(server, asked, writer) -> None:
        await (answers if server.requests < 20 else KINDS["server_error"][0])(server, asked, writer)

    with running(FakeServer(behaviour=behaviour)) as server:
        answer = cli("probe", server.url, "--prompt", "12", "--output", "4", "--concurrency", "1", "--out", str(tmp_path / "p.json"))
    assert answer.status == 1 and "sparse" in answer.out and "status 500" in answer.out + answer.err
    assert not (tmp_path / "p.json").exists()


@pytest.mark.parametrize(("name", "words"), [("stream_options", "unknown field: stream_options"), ("ignore_eos", "Extra inputs"),
                                             ("max_tokens", "'max_tokens' is not supported, use 'max_completion_tokens'")])  # fmt: skip
def test_protocol__loses_the_field_that_is_refused_alone(name: str, words: str) -> None:
    async def behaviour(server, asked, writer) -> None:
        refusal = whole({"error": {"message": words}}, "400 Bad Request")
        await (server.say(writer, refusal) if name in asked.body else answers(server, asked, writer))

    with running(FakeServer(behaviour=behaviour)) as server:
        result, _ = probed(server, Limits(seconds=20, requests=99, tokens_in=10**4, tokens_out=10**4))
    fields = {"ignore_eos", "stream_options", "max_tokens"} - {name}
    assert not result.fault and result.of_kind(LOAD) and fields <= server.seen[-1].body.keys()


def test_budget__holds_a_token_more_than_was_asked_for() -> None:
    async def behaviour(server, asked, writer) -> None:
        events = [server.event("a") for _ in range(asked.wants + 1)]
        usage = {"prompt_tokens": asked.tokens, "completion_tokens": asked.wants + 1}
        await server.say(writer, HEAD, *events, event(finish=True, usage=usage), b"data: [DONE]\n\n")

    most = Limits(seconds=20, requests=999, tokens_in=10**5, tokens_out=100)
    planned, _ = schedule((12,), 4, (1, 2, 4, 8, 16), Limits(seconds=99, requests=999, tokens_in=10**6, tokens_out=10**6))
    with running(FakeServer(behaviour=behaviour)) as server:
        result, spending = run(ProbeTarget(address=server_address(server.url), secrets=Credentials(), silence_s=5), planned, most, 7)
    assert "--tokens-out" in result.stopped
    assert spending.tokens_out == server.tokens_out <= most.tokens_out


def test_schedule__plans_no_prompt_that_the_budget_would_refuse() -> None:
    planned, beyond = schedule((16, 4000), 8, (1, 2), Limits(seconds=9, requests=99, tokens_in=5000, tokens_out=10**4))
    with running(FakeServer(behaviour=answers)) as server:
        most = Limits(seconds=20, requests=99, tokens_in=5000, tokens_out=10**4)
        result, _ = run(ProbeTarget(address=server_address(server.url), secrets=Credentials(), silence_s=5), planned, most, 7)
    assert [run.stage for run in result.stages] == planned and not result.stopped, result.stopped
    assert 4000 in {stage.prompt for stage in beyond}


def test_failed__counts_what_the_server_failed() -> None:
    async def behaviour(server, asked, writer) -> None:
        await (answers if server.requests < 38 else KINDS["server_error"][0])(server, asked, writer)

    with running(FakeServer(behaviour=behaviour)) as server:
        most = Limits(seconds=20, requests=99, tokens_in=10**4, tokens_out=10**4)
        planned, _ = schedule((12,), 8, (1, 8), most)
        result, _ = run(ProbeTarget(address=server_address(server.url), secrets=Credentials(), silence_s=5), planned, most, 7)
    assert result.fault and 1 <= result.stages[-1].failed < 8


def test_interrupt__after_the_file_names_it(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(question: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headway.answers.score.run", interrupted)
    path = tmp_path / "p.json"
    with running(FakeServer(law=StepLaw(fixed=0.001))) as server:
        words = ["--prompt", "12", "--output", "4", "--concurrency", "1,1000000", "--out", str(path), "--on", "h100-sxm"]
        answer = cli("probe", server.url, *words, "--model", "llama-3.1-8b", "-o", "json")
    told = json.loads(answer.out)
    assert answer.status == 130 and any(f"the runs are in {path}" in note for note in told["notes"]) and path.exists()
    assert any("--concurrency: dropped 1 of 2" in note for note in told["notes"]) and "--on MACHINE" not in answer.out
