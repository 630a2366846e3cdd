"""Routes: the page and its files, its declarations, questions that answer at once, and runs that stream their progress; and connections,
how long each may owe its request or leave its answer unread, and which one gives way where there are many."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from importlib.resources import files
from typing import Any, NoReturn

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from headway.core.errors import BadValue, HeadwayError
from headway.web import pages, permitted, single_file
from headway.web import question as page_question
from headway.web.desk import Busy, Desk, Late
from headway.web.guard import BODY_S, Guard

TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}
CLIENT = re.compile(r"[\w-]{1,40}")
AGAIN = {"retry-after": "1"}
BOARD = ("open", "chapter", "claim", "cards", "grade", "drawing", "files", "stop")  # kinds of job beside a question


def static_files() -> dict[str, tuple[str, bytes]]:
    """Every file of the page by name, with its type: a fixed dictionary, so that no path is ever made from a request."""
    folder = files("headway") / "web" / "static"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.rpartition(".")[2] in TYPES)
    return {name: (TYPES[name.rpartition(".")[2]], (folder / name).read_bytes()) for name in names}


def app(desk: Desk, names: tuple[str, ...], port: int, token: str = "") -> Any:
    """The application behind its guard."""
    own_files = static_files()

    @contextlib.asynccontextmanager
    async def life(_: Any) -> AsyncIterator[None]:
        loading = asyncio.create_task(asyncio.to_thread(pages.pages))
        yield
        loading.cancel()
        desk.close()

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name == "vega.js":
            data = await asyncio.to_thread(single_file.script)
            return Response(data, media_type=TYPES["js"], headers={"cache-control": "max-age=86400"})
        if name not in own_files:
            return _error(404, "no such file")
        kind, data = own_files[name]
        return Response(data, media_type=kind)

    async def declared_pages(_: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(pages.pages))

    async def declared_verb(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(pages.verb, request.path_params["verb"]))

    routes = [_route("/static/{name}", file), _route("/api/pages", declared_pages), _route("/api/verb/{verb}", declared_verb, 404),
              _route("/api/ask", functools.partial(_ask, desk), methods=["POST"]),
              _route("/api/run", functools.partial(_run, desk), methods=["POST"]),
              *(_route(path, file) for path in ("/", *(f"/{name}" for name in pages.names())))]  # fmt: skip
    return Guard(Starlette(routes=routes, lifespan=life), names, port, token)


def _route(path: str, answer: Callable[[Request], Awaitable[Response]], status: int = 400, methods: list[str] | None = None) -> Route:
    """A route whose refusals are one line; `status` is that of a wrong question."""

    async def handle(request: Request) -> Response:
        try:
            return await answer(request)
        except HeadwayError as error:
            return _error(403 if isinstance(error, permitted.Refused) else status, str(error))
        except (Busy, Late) as error:
            return _error(503, str(error))

    return Route(path, handle, methods=methods)


def _error(status: int, text: str) -> Response:
    return JSONResponse({"error": " ".join(text.split())}, status, AGAIN if status == 503 else None)


def _job(document: dict[str, Any]) -> tuple[dict[str, Any], page_question.PageQuestion | None]:
    """A job from a request: one of the blackboard, or a question, which is checked here already."""
    kind = document.pop("kind", "ask")
    if kind != "ask" and kind not in BOARD:
        raise permitted.Refused(f"no such kind of question: {str(kind)[:40]!r}")
    return {"kind": kind, "query": document}, page_question.question(document) if kind == "ask" else None


async def _ask(desk: Desk, request: Request) -> Response:
    """A question that answers at once."""
    job, query = _job(_read(await request.body()))
    if query and query.is_heavy:
        return _error(400, "a search or a simulation runs by /api/run")
    peer = (request.client.host if request.client else ""), request.client  # an address, and one of its connections
    frame = await _while_connected(request, desk.ask(job, peer))
    if frame.kind == "answer":
        return Response(frame.answer, media_type="application/json")
    fault = json.loads(frame.data)
    return _error(fault["status"], fault["error"])


async def _while_connected(request: Request, answer: Coroutine[Any, Any, Any]) -> Any:
    """An answer, waited for only as long as there is somebody to read it."""

    async def hang_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    work, ending = asyncio.ensure_future(answer), asyncio.ensure_future(hang_up())
    await asyncio.wait({work, ending}, return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if not work.done():
        work.cancel()
        raise Busy
    return work.result()


async def _run(desk: Desk, request: Request) -> Response:
    """A run: a stream of progress, then the answer; it stops when the client leaves."""
    document = _read(await request.body())
    client = document.pop("client", "")
    if not isinstance(client, str) or not CLIENT.fullmatch(client):
        return _error(400, "client: a name of 1 to 40 letters is wanted")
    job, query = _job(document)
    places = contextlib.ExitStack()
    places.enter_context(desk.place(client))

    async def events() -> AsyncIterator[bytes]:
        with places:
            async with contextlib.aclosing(desk.run(job, query and query.key)) as run:
                async for frame in run:
                    yield b"data: %b\n\n" % frame.data

    return StreamingResponse(events(), media_type="text/event-stream")


# -- the JSON of a request ------------------------------------------------------------------------------------------------------


def _read(data: bytes) -> dict[str, Any]:
    """The JSON object in a body: UTF-8, no NaN and no infinity, however it is written; BadValue for anything else."""
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise BadValue("body", type(error).__name__, "a JSON object in UTF-8 with finite numbers") from None
    if not isinstance(document, dict):
        raise BadValue("body", type(document).__name__, "a JSON object")
    return document


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


# -- connections ----------------------------------------------------------------------------------------------------------------

MOST_CONNECTIONS = 128
HEAD_S = 5.0  # for a request to begin and for its whole head; also between two requests
UNREAD_S = 20.0  # for a client to take what was sent
LOOK_S = 0.5  # between two looks at the clock


class Connection(H11Protocol):
    """A connection that ends where its client keeps it waiting, and that gives way to a newer one while it owes a request."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request; where there are too many, one that owes something ends."""
        super().connection_made(transport)
        self.since = self.loop.time()  # of the present state: waiting for a head, for a body, or answering
        self.state = "head"
        self.unread_since: float | None = None
        self.look = self.loop.call_later(LOOK_S, self._look)
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        self.look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._settle()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may have arrived already."""
        super().on_response_complete()
        self.state = ""  # from here the time of the next head counts
        self._settle()

    def _settle(self) -> None:
        is_answering = self.cycle is not None and not self.cycle.response_complete
        state = "head" if not is_answering else "body" if self.cycle.more_body else "answer"
        if state != self.state:
            self.state, self.since = state, self.loop.time()

    @property
    def owes(self) -> bool:
        """Whether the client has a part of a request still to send, or an answer to read."""
        return self.state != "answer" or self.unread_since is not None

    def _look(self) -> None:
        now, unread = self.loop.time(), self.transport.get_write_buffer_size()
        self.unread_since = (self.unread_since or now) if unread else None
        limit_s = {"head": HEAD_S, "body": BODY_S + LOOK_S}.get(self.state)  # the guard answers a slow body first
        if self.unread_since is not None and now - self.unread_since > UNREAD_S:
            self.transport.abort()
        elif limit_s and not unread and now - self.since > limit_s:
            self.transport.close()
        self.look = self.loop.call_later(LOOK_S, self._look)

    def _make_room(self) -> None:
        """End the connection that has owed its request longest, of the address that has most of them; this one if none owes any."""
        connections: set[Any] = self.connections
        debtors = [peer for peer in connections if peer is not self and peer.owes]
        of_address = Counter(_address(peer) for peer in connections)
        longest = max(debtors, key=lambda peer: (of_address[_address(peer)], -peer.since), default=self)
        connections.discard(longest)  # counted no more, though the loop tells it later
        longest.transport.abort()


def _address(connection: Any) -> Any:
    return connection.client and connection.client[0]
