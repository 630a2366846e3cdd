"""Whether compiling pays, and that what is compiled is loaded once: a second run starts at once."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path

import numpy as np
import pytest

from headway.simulation import compiled
from headway.simulation.capacity import MOST, saturated_sample
from headway.simulation.compiled import COMPILE_S, LOAD_S, choose_form, plain_s, runner, saturated_s
from headway.simulation.questions import REQUESTS
from headway.simulation.traffic.requests import Traffic
from support.paths import ROOT
from support.simulated import RULES, pace, play
from support.work import calls

TRIED = ("0.60", "0.61", "0.62", "0.63", "0.68")  # releases of numba with which this file and test_routing.py passed
CALLS_PER_S = 4e6  # Python functions, with what they do, on the machine that `plain_s` was measured on


def test_runner__second_run_reuses_the_loaded_code():
    pytest.importorskip("numba")
    law = pace("0.01 + 1e-4 * batch")
    first, second = (runner(law.source, law.step, 0.0, "compiled") for _ in range(2))
    assert second.step is first.step
    assert second.run_one is first.run_one


def test_choose_form__long_total_time_compiles():
    pytest.importorskip("numba")
    law = pace("0.01 + 1e-4 * batch")
    assert choose_form(law.source, 300.0, "auto") == "compiled"
    assert choose_form(law.source, 0.001, "auto") == "auto"
    assert choose_form(law.source, 300.0, "plain") == "plain"


@pytest.mark.parametrize(("routed", "shared"), [(False, False), (True, False), (False, True)])
def test_choose_form__missing_code_is_compiled_only_for_longer_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, routed: bool, shared: bool
) -> None:
    """Each of the two loops by itself: the one is no sign of the other."""
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path)
    law = pace("0.02 + 1e-4 * batch")
    between = (LOAD_S + COMPILE_S) / 2

    def choice(takes_s: float) -> str:
        return choose_form(law.source, takes_s, "auto", routed, shared)

    assert choice(between) == "auto"
    assert choice(COMPILE_S * 1.1) == "compiled"
    (tmp_path / f"{compiled._stem(law.source)}-0.code").touch()
    for name, needed in (("run_one", not shared), ("send", routed or shared)):
        if needed:
            assert choice(between) == "auto"
            (tmp_path / f"{name}-0.code").touch()
    assert choice(between) == "compiled"
    assert choice(LOAD_S / 2) == "auto"


def test_default_requests__are_compiled_where_the_loop_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A capacity of two runs and ten thousand requests: 1.5 s in plain Python, half of it compiled."""
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path)
    (tmp_path / "run_one-0.code").touch()
    law, traffic = pace("0.02 + 1e-4 * batch"), Traffic.of(np.arange(MOST) * 0.25, 500, 200)
    takes_s = plain_s(traffic.head(REQUESTS)) + saturated_s(*saturated_sample(traffic, RULES._replace(seats=256, capacity=30_000)))
    assert choose_form(law.source, takes_s, "auto") == "compiled"


@pytest.mark.parametrize("output", [1, 2, 50])
def test_plain_s__at_most_twice_the_real_cost_of_plain_python(output: int) -> None:
    """Else what is compiled for a run would end later than plain Python; bench/bench_sim.py measures the times."""
    traffic = Traffic.of(np.zeros(5000) if output == 1 else np.arange(5000) * 0.01, 10, output)
    count = calls(lambda: play(traffic, "0.001", seats=200, capacity=100_000))
    assert count / CALLS_PER_S > 0.5 * plain_s(traffic)


def doubled(number: float) -> float:
    """A function to compile."""
    return 2.0 * number


def test_entry__stored_code_is_loaded_and_damaged_code_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    from headway.core import code_store
    from headway.simulation import machine_code

    compiles: list[str] = []
    save = code_store.save
    monkeypatch.setattr(code_store, "save", lambda path, data: compiles.append(path.name) or save(path, data))

    def answer() -> float:
        return machine_code.entry(doubled, tmp_path, "doubled")(4.0)

    assert (answer(), answer(), len(compiles)) == (8.0, 8.0, 1)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    damages = (b"", content[:20], content[: len(content) // 2], content[:-1], b"\0" * len(content), content[:-9] + bytes(9))
    for count, damaged in enumerate(damages, 2):
        file.write_bytes(damaged)
        assert (answer(), answer(), len(compiles)) == (8.0, 8.0, count)
    for count, other in enumerate((b"cos\nsystem\n(S'false'\ntR.", pickle.dumps(None), pickle.dumps((1, 2, 3))), len(damages) + 2):
        save(file, other)  # whole, but of another make
        assert (answer(), answer(), len(compiles)) == (8.0, 8.0, count)


def test_entry__without_a_folder_or_with_a_full_one_is_compiled_all_the_same(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    from headway.simulation import machine_code

    for folder in (None, tmp_path / "gone"):
        assert machine_code.entry(doubled, folder, "doubled")(4.0) == 8.0
        assert machine_code.callback(doubled, "float64(float64)", folder, "doubled").ctypes(4.0) == 8.0


def test_numba__releases_that_were_tried_bound_what_is_installed() -> None:
    """machine_code.py builds on classes that numba changes without notice: try a new release here, then raise the bound."""
    first, last = (int(release.partition(".")[2]) for release in (TRIED[0], TRIED[-1]))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert extras["fast"] == [f"numba>=0.{first},<0.{last + 1}"]
    numba = pytest.importorskip("numba")
    assert numba.__version__.split(".")[1] in {str(minor) for minor in range(first, last + 1)}
