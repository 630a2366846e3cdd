"""The server of `headway web`: its address, its token where it is open to others, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import socket
import sys
import webbrowser
from collections.abc import Callable
from typing import Any

from headway.core.errors import BadValue, HeadwayError, MissingExtra
from headway.web.desk import Desk
from headway.web.guard import LOOPBACK, in_url

TRIES = 20  # ports after the first, where that is taken
ANY_ADDRESS = ("", "0.0.0.0", "::")
OUTSIDE_4, OUTSIDE_6 = "192.0.2.1", "2001:db8::1"  # of the ranges for examples
BACKLOG = 128  # connections that the system holds until they are accepted


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
        sock.listen(BACKLOG)  # from here on a browser may come; it waits until the server answers
        return sock
    raise HeadwayError(f"no free port from {port} on; --port chooses another")


def link(host: str, port: int, state: str, token: str = "") -> str:
    """The address of a page in a state, as others reach it."""
    return f"http://{in_url(linked_host(host))}:{port}{state}" + (f"#token={token}" if token else "")


def linked_host(host: str) -> str:
    """The address at which others reach a server that listens at `host`: where that means every address, the one that leads outwards."""
    if host not in ANY_ADDRESS:
        return host
    family, outside = (socket.AF_INET6, OUTSIDE_6) if ":" in host else (socket.AF_INET, OUTSIDE_4)
    for kind, address in ((family, outside), (socket.AF_INET, OUTSIDE_4)):
        with contextlib.suppress(OSError), socket.socket(kind, socket.SOCK_DGRAM) as sock:
            sock.connect((address, 9))  # chooses the way there; nothing is sent
            return sock.getsockname()[0]
    return "::1" if ":" in host else "127.0.0.1"  # without any network


def is_local(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(host: str, port: int, state: Callable[[], str], open_browser: bool) -> None:
    """Serve until interrupted; `state` tells the path and query of the first page."""
    if port == 80:
        raise BadValue("--port", port, "another port: at 80 a browser does not say which site it asks for")
    asyncio.run(_serve(listener(host, port), host, state, open_browser))


async def _serve(sock: socket.socket, host: str, state: Callable[[], str], open_browser: bool) -> None:
    opening = asyncio.create_task((desk := Desk()).warm())
    await asyncio.sleep(0)  # the first worker starts, and loads beside all that follows
    try:
        server = _server(sock, host, state, desk, open_browser)
        await server.serve(sockets=[sock])
    finally:
        opening.cancel()
        desk.close()


def _server(sock: socket.socket, host: str, state: Callable[[], str], desk: Desk, open_browser: bool) -> Any:
    """The server at a socket, whose link is said."""
    try:
        import uvicorn

        from headway.web.app import HEAD_S, Connection, app
    except ImportError:
        raise MissingExtra("headway web", "web") from None
    at = sock.getsockname()[1]
    token = "" if is_local(host) else secrets.token_urlsafe(16)
    names = (*LOOPBACK, *(() if host in ANY_ADDRESS else (in_url(host),)), *(() if is_local(host) else (socket.gethostname(),)))
    address = link(host, at, state(), token)
    sys.stderr.write(f"headway web: {address}   (ctrl-c ends it)\n")
    if token:
        where = " (at any address of this machine)" if host in ANY_ADDRESS else ""
        sys.stderr.write(f"headway web: open to other machines{where}; whoever has this link may ask\n")
    sys.stderr.flush()
    settings: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False, "timeout_graceful_shutdown": 2}
    config = uvicorn.Config(app(desk, names, at, token), http=Connection, ws="none", timeout_keep_alive=int(HEAD_S), **settings)
    if open_browser:
        webbrowser.open(address)
    return uvicorn.Server(config)
