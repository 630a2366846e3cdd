"""The lecture's chapters, its search in plain words and the points that summaries dispute."""

from __future__ import annotations

import csv
import re

import pytest

from headway import QUESTIONS as VERBS
from headway.core.errors import UnknownName
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import claims
from headway.evidence.lecture import chapters as lecture
from headway.evidence.lecture.chapters import disputed_points
from headway.evidence.lecture.inputs import cases, figures
from headway.evidence.lecture.search import find
from support.command import Cli
from support.paths import TESTS

TIMES = ["00:00", "00:32", "00:47", "01:03", "01:18", "01:33", "02:04", "-"]
GROUPS = {"1": {"RB", "FM", "TS", "SP"}, "2": {"MOE", "RK"}, "3": {"PP"}, "4": {"FS"}, "5": {"OT"}, "6": {"AP", "KT", "CW"}, "7": {"CR"},
          "+": {"EX"}}  # fmt: skip
QUESTIONS = list(csv.DictReader((TESTS / "data" / "listener_questions.csv").read_text(encoding="utf-8").splitlines()))
# By someone who had not seen the search; on four of them two chapters bear. 38 of 40 came first before the search was touched.
INDEPENDENT = list(csv.DictReader((TESTS / "data" / "independent_questions.csv").read_text(encoding="utf-8").splitlines()))
INDEPENDENT_LEAST = 36
ROWS = {row.id: row for row in ledger.rows()}


def test_chapters__hold_every_claim_once_in_the_order_of_the_lecture() -> None:
    pages = lecture.chapters()
    assert [page.time for page in pages] == TIMES
    ids = [claim_id for page in pages for claim_id in page.claim_ids()]
    assert sorted(ids) == sorted(claims())
    assert {page.label: {claims()[claim_id].group for claim_id in page.claim_ids()} for page in pages} == GROUPS


def test_chapters__prose_of_300_to_500_words_and_plain_statements() -> None:
    for page in lecture.chapters()[:7]:
        assert 300 <= sum(len(section.text.split()) for section in page.sections) <= 500, page.title
    for page in lecture.chapters():
        assert len(page.says.split()) <= 30
        for section in page.sections:
            assert all(len(sentence.split()) <= 60 for sentence in re.split(r"[.:?] ", section.text)), section.title
            assert all(3 <= len(text.split()) <= 16 and len(text) <= 84 for text in section.statements.values()), section.title
        assert page.figures.keys() <= set(page.claim_ids())
        assert all(name == "" or name in {part.name for part in ROWS[claim_id].parts} for claim_id, name in page.figures.items())


def test_chapter__statement_shows_no_code_or_symbol() -> None:
    for page in lecture.chapters():
        for section in page.sections:
            for text in section.statements.values():
                assert not re.search(r"\b[A-Z]{2,3}-\d\d\b|[κτ]|N_[at]|t_[cmw]|B\*", text), text


def test_lecture__front_page_counts_every_claim(cli: Cli) -> None:
    lines = cli("lecture").text.splitlines()
    assert re.fullmatch(
        r"Reiner Pope's lecture \(Dwarkesh Podcast, 2026-04-29\): of 183 claims, \d+ agree, \d+ differ, \d+ open\.", lines[0]
    )
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines if re.match(r"[1-7+]\s", line)]
    assert [row[0] for row in cells] == list("1234567+")
    assert sum(int(count) for row in cells for count in row[3:6]) == 183
    assert "headway lecture 1" in lines[-2]
    assert len(cli.rows("lecture")) == 183


@pytest.mark.parametrize("page", lecture.chapters(), ids=lambda page: page.label)
def test_lecture__chapter_prints_its_prose_then_its_claims(page: lecture.Chapter, cli: Cli) -> None:
    text = cli("lecture", page.label).text
    assert page.says in text.splitlines()[0] and len(text.splitlines()[0].split()) <= 30
    flat = " ".join(text.split())
    at = 0
    for section in page.sections:
        at = flat.index(" ".join(section.text.split()), at)  # in order, whole
        for claim_id, statement in section.statements.items():
            at = flat.index(f"{claim_id} {statement}", at)
            assert ROWS[claim_id].verdict in flat[at : at + 400]
    assert "lecture: formula; recomputed: 1;" not in flat
    assert [row["id"] for row in cli.rows("lecture", page.label)] == page.claim_ids()


def test_lecture__claim_says_its_words_and_its_neighbours(cli: Cli) -> None:
    text = cli("lecture", "RB-10").text
    assert "in words: balanced batch = hardware ratio x sparsity" in text
    assert "chapter 1, Batch size, latency and cost, group Roofline and batch: follows RB-09" in text and "leads to RB-14" in text


def test_search__listener_questions_find_their_chapter() -> None:
    """Questions as a listener asks them, written before the search; nine of ten find their chapter first."""
    first = [find(row["question"]).chapters[0].chapter.label == row["chapter"] for row in QUESTIONS]
    assert len(QUESTIONS) >= 40
    assert sum(first) >= 0.9 * len(QUESTIONS), [row["question"] for row, right in zip(QUESTIONS, first, strict=True) if not right]


def test_search__questions_of_someone_who_has_not_seen_the_search() -> None:
    first = [find(row["question"]).chapters[0].chapter.label in row["chapters"].split() for row in INDEPENDENT]
    assert len(INDEPENDENT) == 40 and {label for row in INDEPENDENT for label in row["chapters"].split()} == set("1234567")
    assert sum(first) >= INDEPENDENT_LEAST, [row["question"] for row, right in zip(INDEPENDENT, first, strict=True) if not right]


@pytest.mark.parametrize(
    ("words", "claim_id", "chapter"),
    [
        ("spinning disk", "KT-09", "6"), ("slow mode", "FM-05", "1"), ("HBM drain", "KT-06", "6"), ("over-trained", "OT-15", "5"),
        ("bubble", "PP-07", "3"), ("bend radius", "RK-04", "2"), ("Chinchilla", "OT-14", "5"), ("micro batches", "PP-08", "3"),
        ("encryption", "CR-07", "7"), ("optimal batch", "RB-10", "1"), ("absorbed MLA", "CW-03", "6"), ("pipline bubbles", "PP-06", "3"),
    ],
)  # fmt: skip
def test_search__words_find_claim_and_chapter(words: str, claim_id: str, chapter: str) -> None:
    result = find(words)
    assert result.chapters[0].chapter.label == chapter
    assert claim_id in [match.claim_id for match in result.claims]


def test_search__every_claim_is_found_by_its_plain_statement() -> None:
    missing = []
    for claim_id in claims():
        if claim_id not in [match.claim_id for match in find(lecture.statement(claim_id)).claims[:5]]:
            missing.append(claim_id)
    assert missing == []


def test_lecture__codes_and_short_words_are_told_apart(cli: Cli) -> None:
    assert cli("lecture", "kt").text.startswith("13 claims of the lecture")
    assert cli("lecture", "HBM").text.startswith("Chapter ") and cli("lecture", "mfu").text.startswith("Chapter ")
    for code in ("RB-99", "XX-01", "RB99"):
        status, out, err = cli("lecture", code)
        assert (status, out) == (2, "") and "no claim named" in err and "RB (roofline), FM (speed tiers)" in err


def test_search__misheard_name_and_unknown_words(cli: Cli) -> None:
    assert "mishear" in cli("lecture", "--find", "Maddox").text
    with pytest.raises(UnknownName, match="nearest words: "):
        find("flibber")
    status, out, err = cli("lecture", "--find", "qwertz")
    assert (status, out, err.count("\n")) == (2, "", 1) and "nearest words" in err
    text = cli("lecture", "pipline", "of", "batches").text
    assert "'pipline' does not occur; nearest: pipeline" in text
    for empty in ("", "the", "?!"):
        assert cli("lecture", "--find", empty).status == 2


# Section 15 of the check of the lecture: each topic, with a figure of its right version.
POINTS = {
    "64 times against 4 times": ("SP-04", "total over active", 22.0),
    "what takes 20 ms": ("TS-10", "step at balance", 671 / 576_000),
    "128,000 tokens/s": ("TS-07", "2,000 at 64 steps/s", 128_000.0),
    "DeepSeek's ratio": ("RB-12", "per expert", 9600.0),
    "which way sparsity is meant": ("SP-01", "total over active", 8.0),
    "what the floor loads": ("RB-23", "batch 128", 256 * (1 - (248 / 256) ** 128)),
    "where context stopped growing": None,
    "the knee at 200k": ("AP-04", "KV bytes per token", 100e9 / 300 / 200e3),
    "which memory tiers a cache uses": ("KT-09", "20 TB", 20e12 / 0.28e9),
    "what a cache hit is cheaper than": ("AP-15", "over base input", 10.0),
    "2 to 6 in reinforcement learning": ("OT-04", "most", 6.0),
    "why model size stalled": ("PP-18", "racks as stages", 1.0),
    "a thousandth of Gemini": ("TS-08", "July 2025", 128e3 / (980e12 / (365.25 / 12 * 86_400))),
    "150T training tokens": ("OT-12", "60 days", 50e6 * 60 * 86_400),
    "the name of Pope's company": None,
}


def test_disputed__every_point_with_the_figure_of_its_right_version() -> None:
    points = {point.topic: point for point in disputed_points()}
    assert points.keys() == POINTS.keys()
    for topic, point in points.items():
        assert len(point.versions) >= 2 and point.right and point.reason
        assert set(point.claim_ids) <= claims().keys()
        check = POINTS[topic]
        if check:
            claim_id, name, figure = check
            assert claim_id in point.claim_ids
            (part,) = [part for part in ROWS[claim_id].parts if part.name == name]
            assert part.recomputed == pytest.approx(figure, rel=1e-3), topic


def test_disputed__text_and_json(cli: Cli) -> None:
    text = cli("lecture", "--disputed").text
    assert text.startswith("On 15 points published summaries of the lecture disagree")
    rows = cli.rows("lecture", "--disputed")
    assert [row["topic"] for row in rows] == list(POINTS)
    flowing = " ".join(text.split())  # paragraphs are folded
    for row in rows:
        assert f"Right: {row['right']}." in flowing
        assert all(brief["verdict"] == ROWS[brief["id"]].verdict for brief in row["claims"])


def test_chapters__commands_to_try_answer(cli: Cli) -> None:
    """Those of the lecture run; of others the verb exists (their own tests run them)."""
    for page in lecture.chapters():
        assert page.commands
        for command in (*page.commands, *(command for section in page.sections for command in section.commands)):
            program, verb, *rest = command.split()
            assert program == "headway" and verb in VERBS
            if verb == "lecture":
                assert cli(verb, *rest).text


def test_chapter_six__a_rack_holds_three_users_of_a_hundred_million_tokens() -> None:
    """What the prose says, by the claim's law, and by hand: 13.8 TB less 0.67, over 35,136 bytes times 100M."""
    claim = claims()["CW-07"]
    longest = {
        batch: float(figures(claim, cases(claim, ["model=deepseek-v3", f"batch={batch}", "kv_bytes=35136"])[0])["longest context"])
        for batch in (3, 4)
    }
    assert longest[3] > 1e8 > longest[4] and int((72 * 192e9 - 671e9) / (35_136 * 1e8)) == 3


@pytest.mark.parametrize(
    ("question", "holds"),
    [
        ("what is the optimal batch of my model here, and why not 2,400?", "8 of 256"),
        ("what is the optimal batch of my model here, and why not 2,400?", "try: headway lecture --model deepseek-v3 --on gb200-nvl72"),
        ("is there really no path to 100 M tokens?", "Pope sees no clear path"),
        ("is there really no path to 100 M tokens?", "dear, not impossible"),
        ("is there really no path to 100 M tokens?", "try: headway lecture CW-07 --with model=deepseek-v3"),
        ("what do cache prices say about disks?", "so the tiers are not identified"),
        ("what do cache prices say about disks?", "try: headway lecture KT-10"),
    ],
)
def test_question__its_passage_answers(question: str, holds: str, cli: Cli) -> None:
    assert holds in " ".join(cli("lecture", question).text.split())
