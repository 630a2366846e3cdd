"""Builds wheel and sdist into dist/, checks them, tries them in empty environments and writes dist/SHA256SUMS.

    python tools/release.py

Checked: metadata, what the wheel holds, that a second build is the same to the byte. Then, for each Python from 3.11 on of this machine,
the wheel is installed in a new environment without anything of ours, and ten commands run from /; sizes and times are printed and kept to
their limits. The lines of deploy/Dockerfile run one by one, as its user; pipx and uvx run the wheel's file where they are there. Needs a
package index for numpy and rich, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST, DOCKERFILE = ROOT / "dist", ROOT / "deploy" / "Dockerfile"
MOST_MB, MOST_S = 130.0, 60.0  # of a base install; from nothing to the first answer, as processor time: others do not change it
LEAST = (3, 11)
NAME = re.compile(r"python3\.\d+")
TOOLS = ("pip", "setuptools", "wheel", "_distutils_hack", "pkg_resources")  # of an environment, whatever is installed in it
WHOLE = re.compile(r"headway/|headway-[\d.]+\.dist-info/")
NOT_SHIPPED = re.compile(r"(^|/)(tests?|tools|bench|docs)/|\.pyc$")
COMMANDS = (  # the first is the first answer
    "plan llama-3.1-8b --on h100-sxm --rate 5/s --prompt 2k --output 300 --tpot 40ms",
    "--version",
    "serve llama-3.3-70b --on 8xh100-sxm --tp 8 --batch 1,16,64,256 --prompt 4k --output 600 -o csv",
    "sim llama-3.1-8b --on h100-sxm --rate 4/s --prompt 1k --output 200 --requests 500 -o json",
    "train llama-3.1-8b --on 64xh100-sxm --tokens 1T",
    "bill --sheet claude-opus --prompt 8k --output 500 --requests 100 --rate 2/min",
    "price --sheet gemini-3.1-pro",
    "cache deepseek-v3 --on 8xh200 --reuse 0.8 --hold 5min,1h",
    "lecture rb-10",
    "law hardware_ratio weight_byte=2 peak_flops=h100.peak_bf16 mem_bw=h100.hbm_bw",
)


def ran(argv: Sequence[str | Path], where: Path = ROOT, env: dict[str, str] | None = None, user: int | None = None) -> str:
    """What a command writes; ends the release with its words where it fails."""
    done = subprocess.run(list(map(str, argv)), cwd=where, env=env, user=user, group=user, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{shlex.join(map(str, argv))} fails in {where}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


# -- build ----------------------------------------------------------------------------------------------------------------------


def built(folder: Path) -> list[Path]:
    """The sdist and the wheel made of it, in a folder."""
    moment = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    env = os.environ | ({"SOURCE_DATE_EPOCH": moment} if moment else {})
    ran([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder], env=env)
    return sorted(folder.glob("headway-*"))


def check_wheel(wheel: Path) -> None:
    """The wheel holds the package and nothing of its workshop."""
    names = zipfile.ZipFile(wheel).namelist()
    strays = [name for name in names if NOT_SHIPPED.search(name) or not WHOLE.match(name)]
    lacking = [name for name in ("headway/py.typed", "headway/__init__.pyi", "headway/data/sheets/openai.toml") if name not in names]
    if strays or lacking:
        raise SystemExit(f"{wheel.name} holds {strays[:3]} and lacks {lacking}")


# -- empty environments -----------------------------------------------------------------------------------------------------------


def pythons() -> list[Path]:
    """One interpreter of each version from 3.11 on: of PATH, then of pyenv; this one where there is no other."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin"))
    found: dict[tuple[int, int], Path] = {}
    for path in [Path(sys.executable), *(path for folder in folders for path in sorted(folder.glob("python3.*")))]:
        if path == Path(sys.executable) or NAME.fullmatch(path.name):
            told = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True).stdout.split()
            if len(told) == 2:  # a shim of a version that is not chosen fails
                found.setdefault((int(told[0]), int(told[1])), path)
    return [path for version, path in sorted(found.items()) if version >= LEAST]


def empty(folder: Path) -> dict[str, str]:
    """The variables of an environment: its own programs, a home without a file."""
    return {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder / "home"), **{
        name: os.environ[name] for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE") if name in os.environ
    }}  # fmt: skip


def tried(python: Path, wheel: Path, folder: Path) -> str:
    """The wheel in a new environment of one Python: a line of sizes and times."""
    start, busy = time.monotonic(), worked()
    ran([python, "-m", "venv", folder])
    ran([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel])
    installed, times = time.monotonic() - start, []
    for command in COMMANDS:
        before = time.monotonic()
        out = ran([folder / "bin" / "headway", *shlex.split(command)], Path("/"), empty(folder))
        times.append(time.monotonic() - before)
        busy = worked() - busy if command == COMMANDS[0] else busy
        if not out.strip():
            raise SystemExit(f"headway {command}: no answer")
    ran([folder / "bin" / "python", "-m", "headway", "--help"], Path("/"), empty(folder))
    which = "import headway, sys; print(sys.version.split()[0], headway.__file__)"
    version = ran([folder / "bin" / "python", "-c", which], Path("/"), empty(folder))
    if str(folder) not in version:
        raise SystemExit(f"another headway answers: {version}")
    (packages,) = folder.glob("lib/python*/site-packages")
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file() and not is_tool(path.relative_to(packages))) / 1e6
    if size > MOST_MB or busy > MOST_S:
        raise SystemExit(f"{python}: {size:.0f} MB and {busy:.0f} s of work; wants {MOST_MB:g} MB and {MOST_S:g} s")
    return (f"Python {version.split()[0]}: {size:.0f} MB installed in {installed:.0f} s, first answer {times[0]:.1f} s later "
            f"({busy:.0f} s of work); {len(COMMANDS)} commands from / in {sum(times):.0f} s")  # fmt: skip


def worked() -> float:
    """Processor time of all commands so far, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def is_tool(path: Path) -> bool:
    """Whether a file of an environment is of pip and its like."""
    return re.split(r"-\d", path.parts[0])[0] in TOOLS


def container(python: Path, wheel: Path, folder: Path) -> str:
    """The lines of deploy/Dockerfile, one by one: its folders below ours, its user where we may become another."""
    ran([python, "-m", "venv", folder])
    env, where, user, words, count = empty(folder), folder, None, list[str](), 0
    (folder / "home").mkdir()
    for line in DOCKERFILE.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        count += word.isupper()
        if word == "WORKDIR":
            where = folder / "root" / rest.lstrip("/")
            where.mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            shutil.copy(wheel, where)
        elif word == "RUN":
            ran(["/bin/sh", "-c", rest], where, env, user)
        elif word == "ENV":
            env |= dict([rest.split("=", 1)])
        elif word == "USER":
            number = int(rest.partition(":")[0])
            user = number if runs_as(folder / "bin" / "python", number) else None
        elif word in ("ENTRYPOINT", "CMD"):
            words += json.loads(rest)
        elif word not in ("FROM", "#"):
            raise SystemExit(f"{DOCKERFILE}: {word} is not tried here")
    ran(words, where, env, user)
    ran([words[0], *shlex.split(COMMANDS[0])], where, env, user)
    return f"Dockerfile: {count} lines, run one by one{' as ourselves' if user is None else f' as user {user}'}"


def runs_as(python: Path, user: int) -> bool:
    """Whether we may become a user, who can run this Python: one in a home that is closed to others he cannot."""
    try:
        return subprocess.run([python, "-c", "import ensurepip"], user=user, group=user, capture_output=True).returncode == 0
    except OSError:
        return False


def runners(wheel: Path, folder: Path) -> list[str]:
    """pipx and uvx, where they are installed, on the wheel's file."""
    there = [argv for argv in (("pipx", "run", "--spec", wheel, "headway"), ("uvx", "--from", wheel, "headway")) if shutil.which(argv[0])]
    env = os.environ | {name: str(folder / name.lower()) for name in ("PIPX_HOME", "UV_CACHE_DIR", "UV_TOOL_DIR")}
    return [f"{argv[0]}: {ran([*argv, '--version'], Path('/'), env).strip()}" for argv in there]


def main() -> None:
    """Build, check, try, and write the checksums."""
    os.environ.pop("PYTHONPATH", None)  # what is tried is the wheel
    shutil.rmtree(DIST, ignore_errors=True)
    files = built(DIST)
    wheel = next(path for path in files if path.suffix == ".whl")
    ran([sys.executable, "-m", "twine", "check", "--strict", *files])
    check_wheel(wheel)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        folder.chmod(0o755)  # the container's user reads there
        again = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built(folder / "again")}
        if again != sums:
            raise SystemExit("a second build differs")
        print(*(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, the same when built again" for path in files), sep="\n", flush=True)
        for number, python in enumerate(found := pythons()):
            print(tried(python, wheel, folder / str(number)), flush=True)
        user = int(re.findall(r"^USER (\d+)", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)[-1])
        python = next((one for one in (*reversed(found), Path("/usr/bin/python3")) if runs_as(one, user)), found[-1])
        print(container(python, wheel, folder / "container"), *runners(wheel, folder), sep="\n", flush=True)
    (DIST / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()), encoding="utf-8")
    print(f"{DIST.name}/SHA256SUMS: {len(sums)} files")


if __name__ == "__main__":
    main()
