"""Pictures: every one of docs/pictures.md is drawn and looked at by a browser; colours are told apart; labels, axes and files."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import headway as hw
from headway import QUESTIONS
from headway.cli.main import parsed
from headway.core.errors import BadValue, UnknownName
from headway.core.question import question_of
from headway.report import output
from headway.report.pictures.file import svg
from headway.report.pictures.frame import View
from headway.training import timeline
from support.colours import contrast, distance
from support.documented import pictures
from support.picture_browser import PictureBrowser, faults, reason

pytestmark = pytest.mark.slow  # a browser, or a server under fire: minutes

VIEWS = (View(width=360), View(width=360, theme="dark"), View(width=1200), View(width=1200, theme="dark"), View())
GALLERY = pictures()


@pytest.fixture(scope="module")
def browser() -> Iterator[PictureBrowser]:
    page = PictureBrowser()
    yield page
    page.close()


def answered(name: str) -> tuple[Any, str]:
    """The answer of a documented command, and the picture it asks for."""
    question, printed = parsed([*GALLERY[name], "--plot", "picture.png"])
    printed.check(question)
    return question.answer(), printed.picture


@pytest.mark.skipif(bool(reason()), reason=reason() or "-")
@pytest.mark.parametrize("name", GALLERY)
def test_picture__is_legible_at_every_width_and_on_light_and_dark(name: str, browser: PictureBrowser) -> None:
    answer, which = answered(name)
    wrong = []
    for view in VIEWS:
        drawn = output.draw(answer, view, which)
        json.dumps(drawn.spec, allow_nan=False)
        assert drawn.title and drawn.caption.endswith((".", ".)")) and drawn.alt
        wrong += [f"{view.width} {view.theme}: {fault}" for fault in faults(browser.measure(svg(drawn.spec)), view.width)]
    assert wrong == []


def test_gallery__has_a_picture_of_every_verb_that_draws() -> None:
    drawn = {argv[0] for argv in GALLERY.values()}
    assert {verb for verb in QUESTIONS if question_of(verb).pictures} - drawn == {"probe"}  # which needs a server
    assert len(GALLERY) >= 30


# -- colours ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["light", "dark"])
def test_palette__lines_and_labels_stand_out_and_differ(name: str) -> None:
    """Lines 3:1 and text 4.5:1 on the paper; any two lines apart in OKLab, also for three kinds of colour blindness."""
    from headway.report.pictures.palette import MEANINGS, theme

    colours = theme(name)
    assert colours.paper is not None
    assert {
        meaning: contrast(colours.lines[meaning], colours.paper)
        for meaning in MEANINGS
        if contrast(colours.lines[meaning], colours.paper) < 3
    } == {}
    assert contrast(colours.rest, colours.paper) >= 3
    texts = {**{meaning: colours.labels[meaning] for meaning in MEANINGS}, "ink": colours.ink, "muted": colours.muted}
    assert {meaning: contrast(tone, colours.paper) for meaning, tone in texts.items() if contrast(tone, colours.paper) < 4.5} == {}
    lines = [colours.lines[meaning] for meaning in MEANINGS]
    assert min(distance(first, second) for place, first in enumerate(lines) for second in lines[place + 1 :]) > 12


# -- the timeline against the laws --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stages", "count"), [(2, 4), (4, 8), (8, 16), (4, 12)])
def test_timeline__bubble_is_the_laws(stages: int, count: int) -> None:
    from headway.laws.training.step import one_forward_one_backward_bubble, zero_bubble_h1

    laws = {
        "gpipe": one_forward_one_backward_bubble(stages, count), "1f1b": one_forward_one_backward_bubble(stages, count),
        "zb-h1": zero_bubble_h1(stages, count, 1.0, 1.0, 1.0),
    }  # fmt: skip
    for schedule, bubble in laws.items():
        blocks = timeline.training(schedule, stages, count, 1.0, 1.0, 1.0)
        end = max(block.end for block in blocks)
        assert end / (3.0 * count) - 1 == pytest.approx(bubble, rel=1e-12), schedule
        by_stage = [sorted((block.start, block.end) for block in blocks if block.stage == stage) for stage in range(stages)]
        assert all(later[0] >= earlier[1] for spans in by_stage for earlier, later in pairwise(spans))


@pytest.mark.parametrize(("stages", "count", "chunks"), [(2, 4, 2), (4, 8, 2), (4, 12, 3), (8, 16, 4)])
def test_timeline__interleaved_bubble_is_the_laws(stages: int, count: int, chunks: int) -> None:
    from headway.laws.training.step import interleaved_bubble

    blocks = timeline.interleaved(stages, count, chunks, 1.0, 2.0)
    assert len(blocks) == 2 * stages * count * chunks
    assert max(block.end for block in blocks) / (3.0 * count) - 1 == pytest.approx(interleaved_bubble(stages, count, chunks), rel=1e-12)
    by_stage = [sorted((block.start, block.end) for block in blocks if block.stage == stage) for stage in range(stages)]
    assert all(later[0] >= earlier[1] - 1e-12 for spans in by_stage for earlier, later in pairwise(spans))


@pytest.mark.parametrize(("stages", "count"), [(2, 4), (4, 8), (4, 12), (8, 16)])
def test_timeline__second_zero_bubble_has_none_in_twice_the_activations(stages: int, count: int) -> None:
    from headway.laws.training.memory import zero_bubble_h2_in_flight
    from headway.laws.training.step import zero_bubble_h2

    blocks = timeline.training(timeline.TWICE_AHEAD, stages, count, 1.0, 1.0, 1.0)
    assert timeline.longest_stage(blocks, stages) / (3.0 * count) - 1 == zero_bubble_h2(stages, count, 1.0, 1.0, 1.0) == 0
    assert _most_in_flight(blocks) == zero_bubble_h2_in_flight(stages, count)


def _most_in_flight(blocks: list[timeline.PipelineBlock]) -> int:
    """Micro-batches of the first stage between their forward and their backward, at most."""
    turns = sorted((block.end, 1 if block.kind == "F" else -1) for block in blocks if block.stage == 0 and block.kind in "FB")
    return max(sum(step for _, step in turns[:place]) for place in range(len(turns) + 1))


@pytest.mark.parametrize(("stages", "count"), [(2, 4), (4, 8), (4, 12), (6, 12), (8, 20)])
def test_timeline__dualpipe_idles_as_its_law_says(stages: int, count: int) -> None:
    from headway.laws.training.step import dualpipe_bubble
    from headway.training import dualpipe

    times = dualpipe.DualPipeTimes(forward=1.0, input_grad=1.0, weight_grad=1.0, both=3.0)
    blocks = dualpipe.blocks(stages, count, times)
    assert sorted((block.stage, block.micro_batch) for block in blocks if block.kind == "F") == [
        (stage, micro) for stage in range(stages) for micro in range(count)
    ]
    for stage in range(stages):
        busy = {(block.start, block.end) for block in blocks if block.stage == stage}  # two that run at once are one span
        assert all(later[0] >= earlier[1] for earlier, later in pairwise(sorted(busy)))
    bubble = dualpipe_bubble(stages, count, 1.0, 1.0, 1.0, 3.0)
    assert max(block.end for block in blocks) / (3.0 * count) - 1 == pytest.approx(bubble, rel=1e-12, abs=1e-12)


# -- what is lit --------------------------------------------------------------------------------------------------------------------


def test_trend__points_are_all_chips_and_the_line_is_the_median_of_the_lit() -> None:
    result = hw.command("trend chips")
    rest, lit, line = (result.plot().data[f"years0_rows{place}"] for place in range(3))
    known = [row for row in result.rows() if row["hardware_ratio_bf16"]]
    assert len(rest) + len(lit) == len(known) and lit
    assert {point["name"] for point in lit} == {row["chip"].replace("_", "-") for row in known if (row["scale_up_domain"] or 0) >= 8}
    for point in line:
        of_year = [row["y"] for row in lit if row["x"] == point["x"]]
        assert len(of_year) >= 3 and point["y"] == statistics.median_high(of_year)


def test_history__has_a_line_for_each_line_of_models_and_lights_what_moved() -> None:
    result = hw.command("price --history all")
    picture = result.plot()
    assert sum(len(rows) for name, rows in picture.data.items() if name.startswith("rates0_rows")) == len(result.rows())
    assert json.dumps(picture.spec).count('"#909090"') and "openai gpt" in picture.title


def test_map__boxes_tile_the_panel() -> None:
    """Regions are drawn as few boxes; together they cover what their fields cover, and none covers another."""
    picture = hw.command("cache deepseek-v3 --on 8xh200 --reuse 0.8 --hold 5min").plot(picture="map")
    boxes = [row for name, rows in picture.data.items() for row in rows if name.startswith("map_rows") and {"x2", "y2"} <= row.keys()]
    area = sum((box["x2"] - box["x"]) * (box["y2"] - box["y"]) for box in boxes)
    assert len(boxes) < 20 and area == pytest.approx(picture.spec["width"] * picture.spec["height"], rel=0.01)


# -- labels and views -----------------------------------------------------------------------------------------------------------------


def test_spread__moves_as_little_as_possible() -> None:
    from headway.report.pictures.plot import spread

    assert spread([10, 50, 90], 10, 0, 100) == [10, 50, 90]
    assert spread([50, 50], 10, 0, 100) == [45, 55]
    assert spread([98, 99], 10, 0, 100) == [90, 100]


def test_view__keeps_axes_while_a_slider_moves() -> None:
    answer, which = answered("board")
    first = output.draw(answer, View(theme="css", words=False), which)
    again = output.draw(answer, View(theme="css", words=False, axes=first.axes), which)
    assert (again.axes, again.shape) == (first.axes, first.shape)
    assert "var(--c" in json.dumps(first.spec) and "#0072B2" not in json.dumps(first.spec)


@pytest.mark.parametrize("argv", ["list models", "show model llama-3.1-8b", "capacity llama-3.1-8b --on h100", "lecture"])
def test_plot__verbs_without_a_picture_refuse_in_one_line(argv: str) -> None:
    from headway.core.errors import BadValue

    question, _ = parsed(argv.split())
    with pytest.raises(BadValue, match="a verb that draws"):
        output.draw(question.answer())


@pytest.mark.parametrize(("words", "picture"), [
    ("list chips", "hbm,hbm-bw"), ("list models", "total_params,active_params"),
    ("serve llama-3.1-8b --on h100-sxm --batch 1..512*2 --context 4k", "batch,step_s"),
])  # fmt: skip
def test_picture__of_any_two_columns_has_a_dot_for_each_row(words: str, picture: str) -> None:
    """Also of verbs that draw nothing themselves; rows that do not fit or lack a number have none."""
    result = hw.command(words)
    x, y = picture.replace("-", "_").split(",")
    wants = sorted((row[x], row[y]) for row in result.rows() if None not in (row[x], row[y]) and row.get("fits", True))
    dots = next(rows for rows in result.plot(picture=picture).data.values() if rows and y in rows[0])
    assert sorted((row["x"], row[y]) for row in dots) == wants != []


def test_picture__two_columns_that_cannot_be_drawn_are_one_line() -> None:
    for picture, wants in (("hbm,name", "numbers"), ("hbm,hbmbw", "hbm_bw"), ("hbm,hbm_bw,flops", "X,Y")):
        with pytest.raises((BadValue, UnknownName), match=wants):
            hw.command("list chips").plot(picture=picture)
