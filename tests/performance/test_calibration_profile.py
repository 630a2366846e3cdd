"""The file of a calibration profile: a reader gets what was written, whatever its texts hold, and a broken one is one line."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.catalog import Catalog, open_catalog
from headway.core.errors import BadFile, BadValue
from headway.performance.calibration.facts import facts_hash
from headway.performance.calibration.key import RunKey
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.profile import (
    CalibrationRun,
    Profile,
    checked_name,
    observations_of,
    profiles,
    read_profile,
    text_of,
)

KEY = RunKey(model="m", chip="c", chips=8, layout="tp=8", weights="bf16", kv="bf16", engine="vllm")
TEXTS = st.text(st.characters(exclude_categories=("C",)), max_size=20)
NUMBERS = st.floats(-1e6, 1e6)


def run(name: str, file: str = "f.csv", excess: float = 0.1, key: RunKey = KEY, profile: str = "mine") -> CalibrationRun:
    said = Observation(run=f"{profile}:{name}", key=key, month="2026-11", quantity="tpot", slopes=(1.0, 0.0, 0.0, 0.0, 0.0), excess=excess)
    return CalibrationRun(id=name, file=file, hash=f"hash of {file}", date="2026-11", cells=(("id", name), ("tp", 8)), observations=(said,))


def written(folder: Path, *runs: CalibrationRun, name: str = "mine") -> Path:
    path = folder / "calibrations" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(Profile(name=name, runs=runs, headway="1.0", facts="abc")), encoding="utf-8")
    return path


@given(
    name=TEXTS,
    file=TEXTS,
    excess=NUMBERS,
    model=TEXTS,
    cells=st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), TEXTS | NUMBERS),
)
def test_profile__is_read_as_it_was_written(name: str, file: str, excess: float, model: str, cells: dict[str, str | float]) -> None:
    one = replace(run(name, file, excess, replace(KEY, model=model)), cells=tuple(cells.items()))
    with tempfile.TemporaryDirectory() as folder:
        profile = read_profile(written(Path(folder), one))
    assert profile.runs == (one,) and not profile.is_edited
    assert (profile.name, profile.headway, profile.facts) == ("mine", "1.0", "abc")


@given(place=st.integers(0, 600), text=st.text(max_size=5))
def test_profile__with_any_piece_replaced_is_edited_or_refused(place: int, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), run("a"))
        whole = path.read_text(encoding="utf-8")
        piece = whole[:place] + text + whole[place + 3 :]
        path.write_text(piece, encoding="utf-8", newline="")
        try:
            profile = read_profile(path)
        except BadFile as error:
            assert "\n" not in str(error)
        else:
            assert profile.is_edited or piece == whole


def test_profile__two_runs_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="has two runs of one id, 'a'"):
        read_profile(written(tmp_path, run("a"), run("a", "other.csv")))


def test_observations__of_a_run_that_two_profiles_hold_count_once(tmp_path: Path) -> None:
    written(tmp_path, run("a"), run("b"))
    written(tmp_path, run("a", profile="more"), run("c", profile="more"), name="more")
    found = profiles(open_catalog([tmp_path]))
    assert [profile.name for profile in found] == ["mine", "more"] or [profile.name for profile in found] == ["more", "mine"]
    assert sorted(each.run.partition(":")[2] for each in observations_of(found)) == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["../x", "/x", "a/b", "a\\b", "", ".", "..", "none", "None", "a\0b", "ä", "a" * 62])
def test_names__are_plain_words(name: str) -> None:
    with pytest.raises(BadValue, match="--save"):
        checked_name(name)


def test_names__are_folded_as_those_of_chips() -> None:
    assert [checked_name(name) for name in ("mine", "My H100", "run_2026-11.a")] == ["mine", "my-h100", "run-2026-11.a"]


def test_facts__of_the_users_own_count_where_a_deployment_rests_on_them(tmp_path: Path) -> None:
    plain = facts_hash(Catalog(), [KEY])
    chips = tmp_path / "chips"
    chips.mkdir()
    (chips / "other.toml").write_text("x = 1", encoding="utf-8")
    own = open_catalog([tmp_path])
    assert facts_hash(own, [KEY]) == plain  # of another chip
    (chips / "c.toml").write_text("x = 1", encoding="utf-8")
    once = facts_hash(open_catalog([tmp_path]), [KEY])
    assert once != plain
    (tmp_path / "efficiency.toml").write_text("y = 2", encoding="utf-8")
    assert facts_hash(open_catalog([tmp_path]), [KEY]) not in (plain, once)
