"""Files of the user's on a worker that does not have them: their bytes come once, by hash, and the rows are those of the client."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from headway.study import check, manifest, travel, worker
from headway.study.file import read

parquet = pytest.importorskip("pyarrow.parquet")
CONFIG = Path(__file__).parent.parent / "contract" / "golden" / "inputs" / "config.json"
CHIP = '[facts]\npeak_bf16 = "1 PFLOPS"\nhbm = "100 GB"\nhbm_bw = "{bandwidth} TB/s"\n'


def rows(part: worker.AnsweredChunk, folder: Path) -> list[dict[str, object]]:
    path = folder / "part.parquet"
    path.write_bytes(part.data)
    return parquet.ParquetFile(path).read().to_pylist()


@pytest.mark.parametrize("absolute", [False, True])
def test_files__come_to_a_worker_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absolute: bool) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    (home / "own" / "chips").mkdir(parents=True)
    cache.mkdir()
    shutil.copy(CONFIG, home / "mine.json")
    (home / "own" / "chips" / "zeta_9.toml").write_text(CHIP.format(bandwidth=5))
    before = str(home) + "/" if absolute else ""
    (home / "study.toml").write_text(
        f'[[questions]]\nverb = "serve"\nmodel = "{before}mine.json"\non = "zeta-9"\ncatalog = ["{before}own"]\n'
        '[questions.grid]\ntp = [1]\ncontext = ["1k", "2k"]\n'
    )
    monkeypatch.chdir(home)
    monkeypatch.setattr(travel, "_cache", lambda: cache)
    study = read("study.toml")
    bags = travel.luggage(check.checked(study))
    assert {Path(path).name for path in bags.files} == {"mine.json", "zeta_9.toml"}
    job = worker.Job(name="x", block=study.blocks[0], first=0, last=study.blocks[0].groups, sweep="s",
                     build=manifest.build(), day="2026-09-21", luggage=bags)  # fmt: skip
    at_home = worker.answer(job)
    assert isinstance(at_home, worker.AnsweredChunk) and not at_home.failed and not list(cache.iterdir())
    packed = dataclasses.replace(job, luggage=bags.loaded(tuple(bags.files.values())))
    monkeypatch.chdir(tmp_path)
    home.rename(tmp_path / "away")
    lack = worker.answer(job)
    assert isinstance(lack, worker.Lack) and set(lack.hashes) == set(bags.files.values())
    abroad = worker.answer(packed)
    assert isinstance(abroad, worker.AnsweredChunk) and rows(abroad, tmp_path) == rows(at_home, tmp_path)
    again = worker.answer(job)  # by hash, without the bytes
    assert isinstance(again, worker.AnsweredChunk) and rows(again, tmp_path) == rows(at_home, tmp_path)
    assert Path.cwd() == tmp_path


def test_worker__forgets_files_as_they_were_and_does_not_use_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that answered by an alias answers by the alias as it now is; a chip that it has and the client lacks does not count."""
    home, aliases = tmp_path / "home", tmp_path / "own" / "aliases" / "chips.txt"
    aliases.parent.mkdir(parents=True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "study.toml").write_text('[[questions]]\nverb = "serve"\nmodel = "llama-3.1-8b"\non = "mine"\ncatalog = ["own"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setattr(travel, "_cache", lambda: tmp_path / "cache")
    steps = []
    for chip in ("h100-sxm", "h200-sxm", "h200-sxm"):
        aliases.write_text(f"{chip}: mine\n")
        study = read("study.toml")
        bags = travel.luggage(check.checked(study))
        if len(steps) == 2:
            (home / "headway" / "chips").mkdir(parents=True)
            (home / "headway" / "chips" / "h200_sxm.toml").write_text(CHIP.format(bandwidth=50))
            bags = bags.loaded(tuple(bags.files.values()))
        job = worker.Job(
            name="x", block=study.blocks[0], first=0, last=1, sweep="s", build=manifest.build(), day="2026-09-21", luggage=bags
        )
        part = worker.answer(job)
        assert isinstance(part, worker.AnsweredChunk) and not part.failed
        steps.append(rows(part, tmp_path)[0]["step_s"])
    assert steps[0] > steps[1] == steps[2]


def test_model__of_the_hugging_face_cache_travels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = tmp_path / "here" / "models--org--x" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (tmp_path / "cache").mkdir()
    shutil.copy(CONFIG, snapshot / "config.json")
    (tmp_path / "study.toml").write_text('[[questions]]\nverb = "serve"\nmodel = "org/x"\non = "h100-sxm"\n')
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "here"))
    monkeypatch.setattr(travel, "_cache", lambda: tmp_path / "cache")
    study = read(str(tmp_path / "study.toml"))
    bags = travel.luggage(check.checked(study))
    assert [*bags.files] == [str(snapshot / "config.json")]
    job = worker.Job(name="x", block=study.blocks[0], first=0, last=1, sweep="s", build=manifest.build(), day="2026-09-21", luggage=bags)
    packed = dataclasses.replace(job, luggage=bags.loaded(tuple(bags.files.values())))
    at_home = worker.answer(job)
    (tmp_path / "here").rename(tmp_path / "away")
    abroad = worker.answer(packed)
    assert isinstance(at_home, worker.AnsweredChunk) and isinstance(abroad, worker.AnsweredChunk) and not abroad.failed
    assert rows(abroad, tmp_path) == rows(at_home, tmp_path)
