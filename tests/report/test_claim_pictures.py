"""Pictures of the lecture's claims: each is drawn from the claim's own inputs, is legible, or is refused in one line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from headway.answers.lecture import BOARD, SCENES, _listing, draw
from headway.core.errors import BadValue
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import claims
from headway.evidence.lecture import inputs
from headway.evidence.lecture.inputs import cases
from headway.report.pictures.file import svg
from headway.report.pictures.frame import Picture, View
from support.picture_browser import PictureBrowser, faults, reason

WIDTHS = (View(width=360), View(width=1200, theme="dark"))


def rows() -> dict[str, Any]:
    """Rows of the claims, as the verb lists them."""
    return {row["id"]: row for row in _listing(ledger.rows(), {})}


def pictures(view: View) -> dict[str, Picture]:
    """Pictures of all claims that have one."""
    drawn = {}
    for claim_id, row in rows().items():
        try:
            drawn[claim_id] = draw([row], view)
        except BadValue as error:
            assert "\n" not in str(error)
            assert not row["parts"], claim_id
    return drawn


def test_every_claim_with_figures_has_a_picture() -> None:
    assert {claim_id for claim_id, row in rows().items() if row["parts"]} == pictures(View()).keys()


def test_curve__dots_are_the_claims_own_inputs_and_figures() -> None:
    table, curves = rows(), 0
    for claim_id, picture in pictures(View()).items():
        for dot in picture.data.get("claim_lecture", ()):
            claim = claims()[claim_id]
            figures = [part["recomputed"] for part in table[claim_id]["parts"]]
            assert dot["along"] == float(claim.inputs[inputs.axis(claim)])
            assert any(dot["value"] == pytest.approx(figure, rel=1e-12) for figure in figures), claim_id
            curves += 1
    assert curves > 100


def test_scenes__have_the_claims_numbers() -> None:
    drawn = {claim_id: draw([rows()[claim_id]], View()) for claim_id in SCENES}
    timetable = drawn["TS-05"]
    assert "every 20 ms" in timetable.title and "17.7 ms" in timetable.title  # (z - 1) seats of the chain: TS-05 by hand
    departures = [row["at"] for row in timetable.data["waits_departures"]]
    assert [later - earlier for earlier, later in pairwise(departures)] == pytest.approx([0.02] * 11)
    assert "4 stages and 4 micro-batches" in drawn["PP-07"].title
    assert "8 − |3| = 5" in str(drawn["CR-01"].data)
    assert "mean of 2,000 random blocks" in drawn["CR-07"].subtitle
    assert "200T tokens served" in drawn["OT-18"].subtitle


@pytest.mark.parametrize("claim_id", BOARD)
def test_board__has_the_inputs_it_draws(claim_id: str) -> None:
    assert claims()[claim_id].inputs.keys() >= {"total", "active", "weight_byte", "peak", "mem_bw"}


def test_inputs__in_words_without_keys_and_none_for_nothing() -> None:
    document = inputs._about()
    names = {name for claim in claims().values() for name in claim.inputs}
    plain = {name for name, words in document["words"].items() if isinstance(words, str)}
    assert plain <= names
    assert {*document["constants"], *document["counts"], *document["shares"]} <= names
    for claim_id in (key for key, words in document["words"].items() if not isinstance(words, str)):
        assert document["words"][claim_id].keys() <= claims()[claim_id].inputs.keys(), claim_id
    for claim_id, name in document["along"].items():
        assert name in inputs.moving(claim_id), claim_id
    for claim in claims().values():
        for name in claim.inputs:
            assert "_" not in inputs.input_words(claim, name)


def test_span__of_counts_is_whole_and_of_shares_ends_at_one() -> None:
    for claim in claims().values():
        for name in inputs.moving(claim.id):
            if claim.inputs[name].unit == "m":
                continue  # no text is read in metres alone
            values = [case.labels[name] for case in cases(claim, [f"{name}={inputs.span(claim, name)}"])]
            assert len(values) > 9, (claim.id, name)
            if inputs.is_count(name) and float(claim.inputs[name]) >= 1:
                assert all(value == round(value) >= 1 for value in values), (claim.id, name)
            if name in inputs._about()["shares"] and float(claim.inputs[name]) <= 1:
                assert all(0 < value <= 1 + 1e-9 for value in values), (claim.id, name)


@pytest.fixture(scope="module")
def browser() -> Iterator[PictureBrowser]:
    page = PictureBrowser()
    yield page
    page.close()


@pytest.mark.slow
@pytest.mark.skipif(bool(reason()), reason=reason() or "-")
@pytest.mark.parametrize("view", WIDTHS, ids=str)
def test_picture__of_every_claim_is_legible(view: View, browser: PictureBrowser) -> None:
    wrong = {claim_id: faults(browser.measure(svg(picture.spec)), view.width) for claim_id, picture in pictures(view).items()}
    assert {claim_id: found for claim_id, found in wrong.items() if found} == {}
