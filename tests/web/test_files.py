"""The page's own files: small, without other hosts, in the wheel; its colours those of the pictures; its sliders words that verbs take."""

from __future__ import annotations

import itertools
import json
import re
import shlex

import pytest

import headway as hw
from headway.core import schema
from headway.core.errors import HeadwayError, UnknownName
from headway.core.schema import KINDS
from headway.report.pictures import palette
from headway.web import board, pages, permitted
from headway.web.drawings import drawing
from headway.web.permitted import Refused
from headway.web.question import UPLOADS, asked_by, flags_of, question
from support.paths import SOURCE

STATIC = SOURCE / "web" / "static"


def test_files__are_small_and_name_no_other_host() -> None:
    sizes = {path.name: path.stat().st_size for path in STATIC.iterdir()}
    print(f"{sum(sizes.values()) / 1000:.0f} kB in {len(sizes)} files")
    assert sum(sizes.values()) <= 500_000
    for path in STATIC.iterdir():
        addresses = set(re.findall(r"https?://[^'\"\s)]+", path.read_text(encoding="utf-8")))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name
        assert "innerHTML" not in path.read_text(encoding="utf-8") and " style=" not in path.read_text(encoding="utf-8")


def test_colours__are_those_of_the_pictures() -> None:
    text = (STATIC / "style.css").read_text(encoding="utf-8")
    light, dark = text.split(':root[data-theme="dark"]')[:2]
    for block, theme in ((light, "light"), (dark, "dark")):
        for name, colour in palette.variables(theme).items():
            assert f"{name}: {colour}".lower() in block.lower(), (theme, name)


@pytest.mark.parametrize("words", [["measure"], ["fit"], ["nope"]])
def test_link__what_no_page_shows_is_said(words: list[str]) -> None:
    from headway.web.verb import state

    with pytest.raises((Refused, UnknownName)):
        state(words, [])


def test_link__what_the_board_does_not_show_opens_the_table_of_claims() -> None:
    from headway.web.verb import state

    assert state(["lecture"], [("bridge", "on")]) == "/evidence?view=claims&bridge=on"
    assert state(["lecture"], [("with", "total=1T")]) == "/blackboard"
    assert state(["lecture", "quiz", "3"], []) == "/blackboard?chapter=3"


def test_link__keeps_the_changed_inputs_of_a_claim() -> None:
    from headway.web.verb import state

    assert (
        state(["lecture", "rb-10"], [("with", "total=1T"), ("with", "active=40B")])
        == "/blackboard?claim=RB-10&with=total%3D1T&with=active%3D40B"
    )
    shown = board.answer("claim", {"id": "RB-10", "with": ["total=1T", "active=31.5B", "weight_byte=0.5..2*2"]})
    inputs = {entry["name"]: entry for entry in shown["inputs"]}
    assert (shown["axis"], inputs["weight_byte"]["span"]) == ("weight_byte", "0.5..2*2")
    assert [inputs[name]["stops"][inputs[name]["at"]]["word"] for name in ("total", "active")] == ["1T", "31.5B"]
    for wrong in ({"with": ["total=/etc/passwd"]}, {"with": "total=1T"}, {"with": ["total=1T"] * 99}, {"with": ["nonsense=3"]}):
        with pytest.raises(HeadwayError):
            board.answer("claim", {"id": "RB-10"} | wrong)


def test_slider__stands_at_the_stop_nearest_to_a_typed_value() -> None:
    slider = pages._sliders(next(view for page in pages.document() for view in page.get("view", ()) if view["name"] == "serve"))["context"]
    at = board.answer("stop", {"page": "plan", "view": "serve", "flag": "context", "word": "9000"})["at"]
    assert abs(float(schema.scalar(slider[at]["word"], schema.Field("token"), "x")) / 9000 - 1) < 0.07
    for wrong in ({"flag": "tp"}, {"word": "many"}, {"page": "nowhere"}, {"word": ""}):
        with pytest.raises(HeadwayError):
            board.answer("stop", {"page": "plan", "view": "serve", "flag": "context", "word": "9000"} | wrong)


def test_views__ask_what_their_verbs_take() -> None:
    for page in pages.document():
        for view in page.get("view", ()):
            for start in (view, *view.get("preset", ())):
                if not view.get("upload"):
                    question({"verb": view["verb"], "words": start.get("words", []), "flags": start.get("flags", {})})
            known = {control["name"] for group in pages.verb(view["verb"])["groups"] for control in group["controls"]}
            assert set(view["front"]) <= known, (view["name"], set(view["front"]) - known)


def test_sliders__stop_at_words_that_their_flags_take() -> None:
    count = 0
    views = [view for page in pages.document() for view in page.get("view", ())] + [
        entry for entry in board.stages().values() if "verb" in entry
    ]
    for view in views:
        flags = flags_of(asked_by(view["verb"], view["words"]))
        for name, stops in pages._sliders(view).items():
            for stop in stops:
                schema.scalar(stop["word"], pages.number_field(flags[name]), name)
                count += 1
    assert count > 200


def test_board__every_section_that_draws_exists_and_every_claim_of_it_moves() -> None:
    from headway.evidence.lecture.chapters import chapters

    titles = {section.title for chapter in chapters() for section in chapter.sections}
    assert set(board.stages()) <= titles
    for title, entry in board.stages().items():
        if "claim" in entry:
            claim = board.answer("claim", {"id": entry["claim"]} | ({"axis": entry["axis"]} if "axis" in entry else {}))
            assert claim["axis"], title


def test_kinds__of_fields_are_those_that_are_known() -> None:
    questions = [asked_by(verb, ["serve"] if verb == "solve" else []) for verb in permitted.VERBS]
    kinds = {flag.field.kind for question in questions for flag in flags_of(question).values()}
    assert {*permitted.PATTERNS, *kinds} <= {*KINDS, ""}
    assert kinds & {"file", "folder", "output", "secret", "act"}, "and what a page may not give is among them"


def test_drawings__show_what_the_laws_say() -> None:
    from headway.laws.training.step import one_forward_one_backward_bubble

    stages = drawing({"name": "stages", "stages": 4, "micro_batches": 8})
    busy = sum(block["end"] - block["start"] for block in stages["blocks"]) / 4
    assert (stages["end"] - busy) / busy == pytest.approx(one_forward_one_backward_bubble(4, 8))
    trains = drawing({"name": "trains", "load": 0.5})
    assert all(train["aboard"] <= trains["seats"] for train in trains["trains"])
    assert sum(train["aboard"] for train in trains["trains"]) == len(
        [1 for request in trains["requests"] if request["train"] < len(trains["trains"])]
    )
    kept = [step["ordinary"] for step in drawing({"name": "activations", "layers": 8})["steps"]]
    assert kept == sorted(kept[:8]) + kept[8:] and kept[8:] == sorted(kept[8:], reverse=True) and len(kept) == 16


@pytest.mark.parametrize("racks", [1, 2, 4])
def test_drawing__of_an_expert_layer_sends_what_uniform_routing_sends(racks: int) -> None:
    """Of a token's experts 1/racks are at home; 1.5 bytes a value and way, both ways, of 37.5 tokens; the network eight times slower."""
    layer = drawing({"name": "experts", "racks": racks})
    assert [link["crosses"] for link in layer["links"]].count(False) == 8 // racks
    assert all(link["crosses"] == (link["rack"] > 0) and 0 <= link["chip"] < 64 for link in layer["links"])
    assert len({(link["rack"], link["chip"]) for link in layer["links"]}) == 8
    assert max(layer["seconds"].values()) == pytest.approx(max(1, 8 * (1 - 1 / racks)))
    facts = {fact["name"]: fact["text"] for fact in layer["facts"]}
    seconds = 2400 / 64 * 8 * 7168 * (1 + 2) / 900e9 * max(1, 8 * (1 - 1 / racks))
    assert facts["an exchange, one layer"] == f"{seconds * 1e6:.3g} us"


@pytest.mark.parametrize("stages", [1, 3, 8])
def test_drawing__of_a_pipeline_divides_weights_and_not_the_cache(stages: int) -> None:
    memory = drawing({"name": "memory", "stages": stages})
    weights, cache = (kind["size"] for kind in memory["kinds"])
    assert weights * stages == pytest.approx(1e12 / 64) and cache == pytest.approx(2400 * 100_000 * 1667 / 64)
    assert weights + cache <= memory["most"]


def test_drawing__of_an_avalanche_moves_halves_as_a_feistel_network_does() -> None:
    """The right half behind a round is the left half before it; a flipped bit of the right half has moved nowhere else behind the first."""
    rows = [row["bits"] for row in drawing({"name": "avalanche", "rounds": 16})["rows"]]
    assert [row.count("1") for row in rows[:2]] == [1, 1] and len(rows) == 17
    assert all(after[16:] == before[:16] for before, after in itertools.pairwise(rows))
    assert all(8 <= row.count("1") <= 24 for row in rows[8:])  # 16 of 32, within almost three standard deviations


def test_pages__numbers_shown_large_are_columns_of_the_answer() -> None:
    asked = [view for page in pages.document() for view in page.get("view", ()) if view["verb"] not in UPLOADS and view["figures"]]
    lacking = {}
    for view in asked:
        asked_view = question({"verb": view["verb"], "words": view["words"], "flags": view["flags"]})
        columns = json.loads(hw.command(shlex.join(asked_view.argv())).to_json())["columns"]
        lacking[view["name"]] = [key for key in view["figures"] if key not in columns]
    assert {name: keys for name, keys in lacking.items() if keys} == {}


def test_claims__number_that_unfolds_is_the_one_shown() -> None:
    shown = {claim_id: board.answer("claim", {"id": claim_id}) for claim_id in ("TS-04", "MOE-02", "RB-10")}
    for claim_id in ("TS-04", "MOE-02"):
        explained = hw.command(f"lecture {claim_id}").explain("recomputed", 0).to_json()["value"]
        figures = {part["name"]: part["recomputed"] for part in hw.command(f"lecture {claim_id}")[0]["parts"]}
        assert shown[claim_id]["explains"] and explained == next(iter(figures.values())), claim_id
    assert not shown["RB-10"]["explains"]  # what is shown is 5.1k, what decides the verdict is a ratio of 1
