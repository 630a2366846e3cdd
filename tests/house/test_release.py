"""What is released: one version, a wheel of the package alone that answers outside the source, a container's lines, a job, a skill.

`make release` does the rest, which needs a package index: empty environments of each Python, and the container's lines run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import headway as hw
from support.kubernetes import parsed
from support.paths import ROOT, SOURCE
from support.tools import tool

release = tool("release")
JOB = (ROOT / "deploy" / "sweep-job.yaml").read_text(encoding="utf-8")
SKILL = (ROOT / "SKILL.md").read_text(encoding="utf-8")
MOST_SKILL = 900  # words
SERVE = ("serve", "llama-3.1-8b", "--on", "h100-sxm", "--batch", "8", "--context", "4k")


def test_version__is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and project["tool"]["hatch"]["version"]["path"] == "src/headway/__init__.py"
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[0] == hw.__version__
    assert f"headway:{hw.__version__}" in JOB
    versions = [name.rpartition(" ")[2] for name in project["project"]["classifiers"] if "Python :: 3." in name]
    assert versions[0] == project["project"]["requires-python"].removeprefix(">=") == project["tool"]["pyright"]["pythonVersion"]


@pytest.mark.slow
def test_wheel__is_the_package_and_answers_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"headway-{hw.__version__}-py3-none-any.whl"
    release.check_wheel(wheel)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"headway/{path.relative_to(SOURCE)}" for path in SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc"} <= names
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "PYTHONDONTWRITEBYTECODE": "1"}
    for words, wants in ((["-c", "import headway; print(headway.__file__)"], str(tmp_path)), (["-m", "headway", *SERVE], "tok/s")):
        done = subprocess.run([sys.executable, *words], cwd="/", env=env, check=True, capture_output=True, text=True)
        assert wants in done.stdout


def test_container__has_no_root_and_few_lines() -> None:
    lines = [line for line in release.DOCKERFILE.read_text(encoding="utf-8").splitlines() if line[0].isupper()]
    assert len(lines) <= 12 and lines[0].startswith("FROM python:3.")
    users = [line for line in lines if line.startswith("USER")]
    assert users and all(re.fullmatch(r"USER [1-9]\d*:[1-9]\d*", line) for line in users)
    assert f"fsGroup: {users[0].partition(':')[2]}" in JOB, "the job writes as the container's group"


def test_job__each_pod_has_its_share() -> None:
    (job,) = parsed(JOB)
    spec = job["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    command = container["command"][-1]
    assert (job["apiVersion"], job["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert spec["completions"] == spec["parallelism"] == int(command.partition("))/")[2].split()[0])
    assert command.startswith("headway sweep ") and "$((JOB_COMPLETION_INDEX + 1))/" in command  # pods count from 0, shares from 1
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {f"/{path.split('/')[1]}" for path in command.split() if path.startswith("/")} <= mounts
    if "sweep" in hw.QUESTIONS:
        from headway.core.question import question_of

        flags = {f"--{name}" for name in question_of("sweep").__dataclass_fields__}
        assert {word for word in command.split() if word.startswith("--")} <= flags


def test_skill__is_short_and_names_verbs_that_there_are() -> None:
    """Its commands run with those of the pages (tests/contract/test_words.py)."""
    head = re.match(r"---\nname: ([a-z-]+)\ndescription: (.+)\n---\n", SKILL)
    assert head and head[1] == "headway" and len(head[2]) <= 1024
    assert len(SKILL.split()) <= MOST_SKILL
    (table,) = re.findall(r"\| question \| verb \|\n(.*?)\n\n", SKILL, re.DOTALL)
    verbs = {word.split()[0] for line in table.splitlines()[1:] for word in re.findall(r"`([^`]+)`", line)}
    assert verbs <= {*hw.QUESTIONS, "sweep"}, "sweep is its own package"
