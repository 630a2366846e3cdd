"""Files written whole: aside first, then renamed, so that a full disk or an interrupt leaves the old file or none."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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


def _mask() -> int:
    """The process's mask of file permissions, which Python only tells when it is set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
