"""The server of `headway web`: its address, its token where it is open to others, and its end."""

from __future__ import annotations

import secrets
import socket
import sys
from typing import Any

from headway.core.errors import BadValue, HeadwayError, MissingExtra
from headway.web.guard import LOOPBACK

TRIES = 20  # ports after the first, where that is taken
MOST_CONNECTIONS = 128


def listener(host: str, port: int, tries: int = TRIES) -> socket.socket:
    """A socket that listens at the first free port from `port` up."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, port + (tries if port else 1)):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, number))
        except OSError as error:
            sock.close()
            if number == port + tries - 1 or not port or not isinstance(error, OSError) or error.errno not in (48, 98, 10048, 13):
                raise HeadwayError(f"cannot listen at {host}:{number}: {error.strerror or error}; --port chooses another") from None
            continue
        sock.listen(MOST_CONNECTIONS)  # from here on a browser may come; it waits until the server answers
        return sock
    raise HeadwayError(f"no free port from {port} on; --port chooses another")


def link(host: str, port: int, state: str, token: str = "") -> str:
    """The address of a page in a state."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}{state}" + (f"#token={token}" if token else "")


def is_local(host: str) -> bool:
    """Whether only this machine can reach the address."""
    return host in ("127.0.0.1", "localhost", "::1")


def serve(host: str, port: int, state: str, open_browser: bool) -> None:
    """Serve until interrupted."""
    try:
        import uvicorn

        from headway.web.app import app
    except ImportError:
        raise MissingExtra("headway web", "web") from None
    if port == 80:
        raise BadValue("--port", port, "another port: at 80 a browser does not say which site it asks for")
    sock = listener(host, port)
    at = sock.getsockname()[1]
    token = "" if is_local(host) else secrets.token_urlsafe(16)
    names = LOOPBACK if is_local(host) else (host, socket.gethostname(), *LOOPBACK)
    address = link(host, at, state, token)
    sys.stderr.write(f"headway web: {address}   (ctrl-c ends it)\n")
    if token:
        sys.stderr.write("headway web: open to other machines; whoever has this link may ask\n")
    sys.stderr.flush()
    settings: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False, "timeout_keep_alive": 5}
    config = uvicorn.Config(app(names, at, token), limit_concurrency=MOST_CONNECTIONS, timeout_graceful_shutdown=2, **settings)
    server = uvicorn.Server(config)
    if open_browser:
        import webbrowser

        webbrowser.open(address)
    server.run(sockets=[sock])
