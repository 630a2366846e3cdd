"""What stands before every route: who may ask, how much, how slowly, and the headers of every response, errors too.

Host is the check that counts: a page elsewhere whose name is made to point here is then of its own origin, but its Host is not ours.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

Scope: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
MOST_BODY = 65_536  # bytes of a question
MOST_UPLOAD_BODY = 6_000_000  # bytes of a question with a dropped file
BODY_S = 5.0  # for the whole body
REASONS = {
    400: "not a question: a JSON object is wanted",
    403: "this comes from another site",
    405: "only GET and POST",
    408: "the body did not arrive",
    413: "the body is too large",
    415: "content-type: application/json is wanted",
    421: "this host name is not served: open the link that `headway web` printed",
    401: "the token of the link is missing: open the link that `headway web` printed",
}


class Guard:
    """Checks every request before the app sees it, reads its body within bounds, and adds the headers to every response."""

    def __init__(self, app: Any, names: tuple[str, ...], port: int, token: str = "") -> None:
        self.app, self.token, self.port = app, token, port
        self.hosts = frozenset(f"{name}:{port}".lower().encode() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message.get("headers", ())}
                message["headers"] = [*message.get("headers", ()), *(pair for pair in HEADERS if pair[0] not in present)]
            await send(message)

        status = self.fault(scope)
        body = b""
        if not status and scope["method"] == "POST":
            status, body = await _body(scope, receive)
        if status:
            await refuse(send_with_headers, status, REASONS[status])
            return
        await self.app(scope, _replayed(body, receive), send_with_headers)

    def fault(self, scope: Scope) -> int:
        """Status of a request that may not be answered; 0 for one that may."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts, method = headers.get(b"host", []), scope["method"]
        known, place = self.hosts, scope.get("server")
        if self.token and place:  # open to others: also the number at which this connection arrived, which no evil page can make its own
            known = known | {f"{in_url(place[0])}:{self.port}".encode()}
        if len(hosts) != 1 or hosts[0].lower() not in known:
            return 421
        if any(not origin.startswith(b"http://") or origin[7:] not in known for origin in headers.get(b"origin", ())):
            return 403
        link = method == "GET" and headers.get(b"sec-fetch-dest") == [b"document"]  # a shared link, opened from elsewhere, is welcome
        if headers.get(b"sec-fetch-site", [b"none"])[0] not in (b"none", b"same-origin") and not link:
            return 403
        if method not in ("GET", "HEAD", "POST"):
            return 405
        if method == "POST" and headers.get(b"content-type", [b""])[0].split(b";")[0].strip() != b"application/json":
            return 415
        if not self.token or not scope["path"].startswith("/api/"):
            return 0  # beyond this machine every request for data needs the token; the page's own files hold nothing
        tokens = headers.get(b"x-headway-token", ())
        return 0 if any(hmac.compare_digest(value, self.token.encode()) for value in tokens) else 401


def in_url(address: str) -> str:
    """An IP address as it stands in a link: an IPv4 one behind IPv6 as itself, an IPv6 one in brackets; a name as it is.

    >>> in_url("::ffff:192.0.2.7"), in_url("2001:DB8::1"), in_url("example.org")
    ('192.0.2.7', '[2001:db8::1]', 'example.org')
    """
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if number.version == 4:
        return str(number)
    return str(number.ipv4_mapped or f"[{number}]")


async def _body(scope: Scope, receive: Receive) -> tuple[int, bytes]:
    """The body of a question, and the status of one that is too long, too slow or broken off."""
    most = MOST_UPLOAD_BODY if scope["path"] == "/api/run" else MOST_BODY
    length = next((value for name, value in scope["headers"] if name.lower() == b"content-length"), b"0")
    if not length.isdigit() or int(length[:20]) > most:
        return 413, b""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return 400, b""
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    return 413, b""
                if not message.get("more_body"):
                    return 0, b"".join(parts)
    except TimeoutError:
        return 408, b""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """`receive` of a request whose body was read: the body once, then what the client does."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> dict[str, Any]:
        return waiting.pop() if waiting else await receive()

    return again


async def refuse(send: Send, status: int, reason: str) -> None:
    """A refusal in one line."""
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
