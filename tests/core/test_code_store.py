"""Code is loaded only from where nobody else can write; what is damaged is made again, and no place at all is no error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headway.core import code_store
from support.each import for_each

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of POSIX")
NOBODY = 65534
Making = Callable[[Path], object]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No folder of another test."""
    code_store.code_folder.cache_clear()
    yield
    code_store.code_folder.cache_clear()


def folder_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    code_store.code_folder.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return code_store.code_folder("code")


def test_code_folder__is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = os.umask(0o002)  # usual where each user has a group
    try:
        folder = folder_in(tmp_path / "home" / "cache", monkeypatch)
    finally:
        os.umask(mask)
    assert folder == tmp_path / "home" / "cache" / "headway" / "code"
    places = [place for place in (folder, *folder.parents) if tmp_path in place.parents]
    assert len(places) == 4 and all(place.stat().st_mode & 0o777 == 0o700 for place in places)


def linked(base: Path) -> Path:
    """A link in a folder where anybody may put another in its place."""
    (base / "open").mkdir()
    (base / "own").mkdir(0o700)
    (base / "open" / "link").symlink_to(base / "own")
    (base / "open").chmod(0o777)
    return base / "open" / "link"


def moded(mode: int, below: str = "") -> Callable[[Path], Path]:
    def made(base: Path) -> Path:
        (base / "home" / below).mkdir(parents=True)
        (base / "home").chmod(mode)
        return base / "home" / below

    return made


def foreign(base: Path) -> Path:
    (base / "home").mkdir(0o755)
    os.chown(base / "home", NOBODY, NOBODY)
    return base / "home"


def filed(base: Path) -> Path:
    (base / "home").write_text("a file", encoding="utf-8")
    return base / "home"


def looped(base: Path) -> Path:
    (base / "home").symlink_to(base / "home")
    return base / "home"


UNSAFE: dict[str, Callable[[Path], Path]] = {
    "others may write": moded(0o777), "a group may write": moded(0o770), "sticky, but shared": moded(0o1777),
    "a parent that others may write": moded(0o757, "a/b"), "a link that others may replace": linked, "a file": filed, "a loop": looped,
    "relative": lambda base: Path("cache"), "another's": foreign,
}  # fmt: skip


@posix
def test_code_folder__no_place_that_others_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def check(kind: str) -> None:
        if kind == "another's" and os.geteuid():
            return
        base = tmp_path / kind.replace(" ", "-").replace("'", "")
        base.mkdir()
        home = UNSAFE[kind](base)
        assert folder_in(home, monkeypatch) is None
        assert home.is_symlink() or not (home / "headway").exists()

    for_each(UNSAFE, check)


@posix
def test_code_folder__below_a_sticky_folder_and_by_own_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    assert folder_in(tmp_path / "shared" / "home", monkeypatch) == tmp_path / "shared" / "home" / "headway" / "code"
    (tmp_path / "link").symlink_to("shared/home")
    assert folder_in(tmp_path / "link", monkeypatch) == tmp_path / "shared" / "home" / "headway" / "code"


@posix
def test_code_folder__that_others_could_fill_is_emptied_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that an older version made under an open mask is of use again; what lay in it is not."""
    for loose in ("headway", "headway/code"):
        (tmp_path / "headway" / "code").mkdir(parents=True)
        (tmp_path / "headway" / "code" / "planted").write_text("x", encoding="utf-8")
        (tmp_path / loose).chmod(0o775)
        folder = folder_in(tmp_path, monkeypatch)
        assert folder == tmp_path / "headway" / "code" and list(folder.iterdir()) == [] and folder.stat().st_mode & 0o777 == 0o700
        shutil.rmtree(tmp_path / "headway")


@posix
def test_code_folder__none_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for home in (tmp_path / "gone" / "x", Path(os.devnull)):
        monkeypatch.setenv("HOME", str(home))
        code_store.code_folder.cache_clear()
        if home == Path(os.devnull) or os.geteuid():
            assert code_store.code_folder("code") is None

    def homeless() -> Path:
        raise RuntimeError("no home folder")

    monkeypatch.setattr(Path, "home", homeless)
    code_store.code_folder.cache_clear()
    assert code_store.code_folder("code") is None


def test_load__what_was_saved_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.code"
    assert code_store.load(path) is None
    code_store.save(path, b"code" * 99)
    assert code_store.load(path) == b"code" * 99 and [found.name for found in tmp_path.iterdir()] == ["x.code"]
    content = path.read_bytes()
    for damaged in (b"", content[:20], content[:-1], content + b"x", bytes([content[0] ^ 1]) + content[1:], b"garbage"):
        path.write_bytes(damaged)
        assert code_store.load(path) is None and not path.exists()


@posix
def test_load__nothing_that_another_wrote_or_could_write(tmp_path: Path) -> None:
    path = tmp_path / "x.code"

    def foreign_file() -> None:
        os.chown(path, NOBODY, NOBODY) if not os.geteuid() else path.chmod(0o666)

    def behind_link() -> None:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to("elsewhere")

    def pipe() -> None:
        path.unlink()
        os.mkfifo(path)

    def in_the_way() -> None:
        path.unlink()
        path.mkdir()

    for change in (foreign_file, lambda: path.chmod(0o620), lambda: path.chmod(0o602), behind_link, pipe, in_the_way):
        code_store.save(path, b"code")
        assert path.read_bytes()
        change()
        assert code_store.load(path) is None and not os.path.lexists(path)


def test_save__where_nothing_can_be_kept_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code_store.save(tmp_path / "gone" / "x.code", b"code")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    code_store.save(tmp_path / "x.code", b"code")
    assert list(tmp_path.iterdir()) == []
