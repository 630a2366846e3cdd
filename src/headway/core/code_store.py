"""Code that headway made itself, kept between runs: only where nobody else can write, else nowhere.

Whoever may write what is loaded as code runs as its reader. So a folder counts only if it, and every folder above it, belongs to this user
or to root and nobody else may write there (or rename there: a shared folder with the sticky bit, such as /tmp, may stand above it).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import stat
from pathlib import Path

from headway.core.files import write_whole

MOST_LINKS = 40  # on the way to a folder, as in Linux
DIGEST_BYTES = hashlib.sha256().digest_size


def cache_home() -> Path | None:
    """The user's folder of what can be made again; None without one."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    try:
        home = Path(configured) if configured else Path.home() / ".cache"
    except RuntimeError:  # no home folder
        return None
    return home if home.is_absolute() else None  # a relative one would be another in each folder, shared ones too


@functools.cache
def code_folder(name: str) -> Path | None:
    """A folder of this user for code under a name, made if need be; None where there is no safe place, or none that can be written."""
    home = cache_home()
    if home is None:
        return None
    folder = home / "headway" / name
    try:
        missing = [place for place in (home, *home.parents) if not place.exists()]
        if not (_is_safe(missing[-1].parent, is_above=True) if missing else _is_safe(home)):
            return None
        for place in (*reversed(missing), folder.parent, folder):
            _make(place)
        real = folder.resolve()
        return real if _is_safe(folder) and _is_safe(real) and os.access(real, os.W_OK | os.X_OK) else None
    except OSError:  # a file in its way, a read-only or full disk, a loop of links
        return None


def _make(folder: Path) -> None:
    """A folder that only its user enters; one of that name that others could fill is emptied first."""
    with contextlib.suppress(FileNotFoundError):
        status = folder.lstat()
        if _is_own(status) and (stat.S_ISLNK(status.st_mode) or not _others_write(status)):
            return
        shutil.rmtree(folder) if stat.S_ISDIR(status.st_mode) else folder.unlink()
    with contextlib.suppress(FileExistsError):  # made by another process meanwhile
        folder.mkdir(mode=0o700)


def _is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to this user or to root; systems without such owners keep users' folders apart by other means."""
    return not hasattr(os, "geteuid") or status.st_uid in (0, os.geteuid())


def _others_write(status: os.stat_result) -> bool:
    return os.name != "nt" and bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_safe(folder: Path, links: int = 0, is_above: bool = False) -> bool:
    """Whether nobody else can write a folder or put another in its place; `is_above`: or replace what this user has in it."""
    if links > MOST_LINKS:
        return False
    for place in (folder, *folder.parents):
        status = place.lstat()
        if not _is_own(status):
            return False
        if stat.S_ISLNK(status.st_mode):
            target = Path(os.path.normpath(place.parent.resolve() / place.readlink()))
            return _is_safe(place.parent, links + 1, True) and _is_safe(target / folder.relative_to(place), links + 1, is_above)
        is_sticky = (is_above or place != folder) and status.st_mode & stat.S_ISVTX
        if _others_write(status) and not is_sticky:
            return False
    return True


def load(path: Path) -> bytes | None:
    """What `save` kept; None where nothing is, or where it is not whole or may be another's, and then it is removed."""
    content = b""
    try:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and _is_own(status) and not _others_write(status):
            content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:  # a failing disk
        pass
    digest, data = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    return data if digest == hashlib.sha256(data).digest() else forget(path)


def save(path: Path, data: bytes) -> None:
    """Keep data if that can be: a full or read-only disk is no error, since it can be made again."""
    with contextlib.suppress(OSError):
        write_whole(path, hashlib.sha256(data).digest() + data, mode=0o600)


def forget(path: Path) -> None:
    """Remove what cannot be used, if that can be."""
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
