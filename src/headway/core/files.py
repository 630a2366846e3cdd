"""Files written whole: aside first, then renamed, so that a full disk or an interrupt leaves the old file or none."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from headway.core.errors import BadFile


def write_whole(path: str | Path, content: str | bytes, mode: int | None = None) -> None:
    """Write a file, text as UTF-8; OSError where it cannot be, and then nothing of it stays. A device or pipe is written as it is.

    Without `mode` a file that is there keeps its permissions, and a new one has the usual ones.
    """
    target, content = Path(path), content.encode("utf-8") if isinstance(content, str) else content
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    target = target.resolve()  # a link stays one
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:80]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        usual = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_mask()
        Path(draft).chmod(usual if mode is None else mode)
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def save(path: str | Path, content: str | bytes, makes_folder: bool = False) -> None:
    """Write a file whole; BadFile where it cannot be. `makes_folder`: its folder, of the user's own catalogue, need not be there yet."""
    try:
        if makes_folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise BadFile(path, f"cannot be written ({error.strerror or error})") from None


def check_output(path: str, flag: str, may_replace: bool, nothing: str) -> Path:
    """The file that `flag` names, looked at before what it will hold is made; `nothing` says in the error what has not happened."""
    target = Path(path)
    if target.is_dir():
        raise BadFile(target, f"is a folder; {nothing}: {flag} names a file")
    if target.exists() and not may_replace:
        raise BadFile(target, f"exists; {nothing}: --replace writes over it, or {flag} another name")
    folder = target.resolve().parent  # of the file that a link leads to
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise BadFile(folder, f"is no folder that can be written to; {nothing}")
    return target


def _mask() -> int:
    """The process's mask of file permissions, which Python only tells when it is set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
