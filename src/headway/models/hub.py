"""config.json of a Hugging Face id: from the local cache, else downloaded; without a network that fails at once, in one line."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from headway.core.errors import BadFile, MissingExtra

ENDPOINT = "https://huggingface.co"
WAIT_S = 0.8  # for a connection to the hub or to its proxy
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def cache() -> Path | None:
    """The local Hugging Face cache, which need not be there; None without a home folder."""
    try:
        home = Path(os.environ.get("HF_HOME") or Path("~/.cache/huggingface").expanduser())
    except RuntimeError:  # no home folder
        return None
    return Path(os.environ.get("HF_HUB_CACHE") or home / "hub")


def cached(text: str) -> Path | None:
    """Newest config.json of a model in the local Hugging Face cache; None if there is none."""
    root = cache()
    if root is None:
        return None
    snapshots = list((root / f"models--{text.replace('/', '--')}" / "snapshots").glob("*/config.json"))
    return max(snapshots, key=lambda path: path.stat().st_mtime) if snapshots else None


def download(text: str) -> Path:
    """config.json of a Hugging Face id, downloaded by the optional package."""
    try:
        from huggingface_hub import hf_hub_download  # type: ignore[import-not-found]
    except ImportError:
        raise MissingExtra(f"{text!r} is not in the catalogue (headway list models); reading it from Hugging Face", "hub") from None
    if not reachable(*gateway(os.environ)):
        raise BadFile(text, "not in the catalogue (headway list models), and Hugging Face cannot be reached; wants a path to a config.json")
    try:
        return Path(hf_hub_download(text, "config.json"))
    except Exception as error:  # the hub raises many types: no network, unknown or gated repository, ...
        raise BadFile(text, f"no config.json from Hugging Face ({type(error).__name__})") from None


def download_beside(text: str, name: str) -> None:
    """A further file of a Hugging Face id, into the folder of its config.json; nothing where the hub has none."""
    try:
        from huggingface_hub import hf_hub_download  # type: ignore[import-not-found]

        hf_hub_download(text, name)
    except Exception:  # most repositories have no such file
        return


def gateway(environment: Mapping[str, str]) -> tuple[str, int]:
    """Host and port to which a download connects first: the proxy if there is one, else the hub."""
    proxy = next((environment[name] for name in PROXIES if environment.get(name)), "")
    place = urlsplit(proxy if "//" in proxy else f"http://{proxy}") if proxy else urlsplit(environment.get("HF_ENDPOINT") or ENDPOINT)
    return place.hostname or "", place.port or (443 if place.scheme == "https" else 80)


def reachable(host: str, port: int) -> bool:
    """Whether a connection opens soon; names may resolve slowly without a network, so that the wait is in a thread of its own."""
    opened = threading.Event()

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=WAIT_S).close()
            opened.set()
        except (OSError, ValueError):
            pass
        finally:
            over.set()

    over = threading.Event()
    threading.Thread(target=connect, daemon=True).start()
    over.wait(WAIT_S)
    return opened.is_set()
