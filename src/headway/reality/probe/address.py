"""The address of a server: the only place that a probe sends anything to."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from headway.core.errors import BadValue

PORTS = {"http": 80, "https": 443}
LOCAL = "localhost"
WANTS = "http://HOST:PORT or https://HOST, such as http://127.0.0.1:8000"
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\x20-\x7e]*)")
OF_PROBE = {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept", "accept-encoding", "user-agent"}
LEAST_SECRET = 4  # letters from which a header's value is hidden wherever the server repeats it


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Scheme, host and port, and the path that stands before /v1."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def is_local(self) -> bool:
        """Whether the name can only mean this machine."""
        return self.host == LOCAL or is_loopback(self.host)

    @property
    def text(self) -> str:
        """The address as people write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.secure}://{host}:{self.port}{self.path}"


def is_loopback(host: str) -> bool:
    """Whether an address is one of this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("10.0.0.7"), is_loopback("localhost.example.org")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server_address(url: str) -> ServerAddress:
    """The address that a URL names; a URL that could hold a key is refused without printing it.

    >>> server_address("http://127.0.0.1:8000/v1/").text
    'http://127.0.0.1:8000'
    """
    if any(sign in url for sign in "@?#"):
        raise BadValue("URL", "one with '@', '?' or '#', not printed here", f"{WANTS}; a key goes into a variable that --api-key-env names")
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise BadValue("URL", "an address that cannot be read", WANTS) from None
    if parts.scheme not in PORTS or not parts.hostname or not re.fullmatch(r"[\w.:%-]+", parts.hostname, re.ASCII) or port == 0:
        raise BadValue("URL", url, WANTS)
    path = parts.path.rstrip("/").removesuffix("/v1")
    if not re.fullmatch(r"[\w./~-]*", path, re.ASCII):
        raise BadValue("URL", path, "a path of letters, digits, dots and slashes before /v1")
    return ServerAddress(secure=parts.scheme == "https", host=parts.hostname, port=port or PORTS[parts.scheme], path=path)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Credentials:
    """Headers that go with every request; their values are printed and stored nowhere."""

    headers: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> str:
        """The names alone, for people."""
        return ", ".join(name for name, _ in self.headers)

    def hidden(self, text: str) -> str:
        """A text of the server's without the values, which it may repeat."""
        for _, value in self.headers:
            for part in (value, *value.split()):
                text = text.replace(part, "***") if len(part) >= LEAST_SECRET else text
        return text


def credentials(key_variable: str | None, headers: Sequence[str]) -> Credentials:
    """The headers of --api-key-env and --header; a wrong one is refused by its place, never by its words."""
    pairs = []
    if key_variable:
        key = os.environ.get(key_variable, "").strip()
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            raise BadValue("--api-key-env", "words that are not printed here", "the name of an environment variable that holds a key")
        pairs.append(("Authorization", f"Bearer {key}"))
    for place, header in enumerate(headers, 1):
        match = HEADER.fullmatch(header)
        if match is None:
            raise BadValue("--header", f"number {place}, which is not printed here", "'Name: value', in quotes, on one line")
        if match[1].lower() in OF_PROBE or match[1].lower() in [name.lower() for name, _ in pairs]:
            raise BadValue("--header", match[1], "a header that probe does not write itself, and each once")
        pairs.append((match[1], match[2]))
    return Credentials(headers=tuple(pairs))


def check(address: ServerAddress, yes_remote: Any, secrets: Credentials) -> None:
    """Raise BadValue for a server elsewhere that was not agreed to, or that keys would reach in clear text."""
    if address.is_local:
        return
    if not yes_remote:
        raise BadValue("URL", address.text, "a server of this machine, or --yes-remote: probe would load a server elsewhere")
    if secrets.headers and not address.secure:
        raise BadValue("URL", address.text, "https://: over http to another machine a key or header could be read on the way")
