"""Routes: the page and its files, its declarations, questions that answer at once, and runs that stream their progress."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from headway.core.errors import HeadwayError
from headway.web import body, bundle, pages
from headway.web.desk import Busy, Desk, Late
from headway.web.guard import Guard
from headway.web.permitted import Refused
from headway.web.question import question
from headway.web.turns import Peer

TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}
CLIENT = re.compile(r"[\w-]{1,40}")
AGAIN = {"retry-after": "1"}
BOARD = ("chapter", "claim", "cards", "grade", "drawing", "files", "stop")  # kinds of job beside a question


def static_files() -> dict[str, tuple[str, bytes]]:
    """Every file of the page by name, with its type: a fixed dictionary, so that no path is ever made from a request."""
    folder = files("headway") / "web" / "static"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.rpartition(".")[2] in TYPES)
    return {name: (TYPES[name.rpartition(".")[2]], (folder / name).read_bytes()) for name in names}


def app(names: tuple[str, ...], port: int, token: str = "") -> Any:
    """The application behind its guard."""
    desk, own_files = Desk(), static_files()

    @contextlib.asynccontextmanager
    async def life(_: Any) -> AsyncIterator[None]:
        opening = [asyncio.create_task(desk.open()), asyncio.create_task(asyncio.to_thread(pages.pages))]
        yield
        for task in opening:
            task.cancel()
        desk.close()

    async def page(_: Request) -> Response:
        kind, data = own_files["index.html"]
        return Response(data, media_type=kind)

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name == "vega.js":
            return Response(await asyncio.to_thread(bundle.script), media_type=TYPES["js"], headers={"cache-control": "max-age=86400"})
        if name not in own_files:
            return _error(404, "no such file")
        kind, data = own_files[name]
        return Response(data, media_type=kind)

    routes = [Route("/static/{name}", file), Route("/api/pages", _declared(lambda _: pages.pages())),
              Route("/api/verb/{verb}", _declared(lambda request: pages.verb(request.path_params["verb"]))),
              Route("/api/ask", functools.partial(_ask, desk), methods=["POST"]),
              Route("/api/run", functools.partial(_run, desk), methods=["POST"]),
              *(Route(path, page) for path in ("/", *(f"/{name}" for name in pages.names())))]  # fmt: skip
    return Guard(Starlette(routes=routes, lifespan=life), names, port, token)


def _declared(make: Callable[[Request], Any]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            return JSONResponse(await asyncio.to_thread(make, request))
        except HeadwayError as error:
            return _error(404, str(error))

    return answer


def _error(status: int, text: str) -> Response:
    return JSONResponse({"error": " ".join(text.split())}, status, AGAIN if status == 503 else None)


def _job(document: dict[str, Any]) -> dict[str, Any]:
    """A job from a request: one of the blackboard, or a question, which is checked here already."""
    kind = document.pop("kind", "ask")
    if kind == "ask":
        question(document)
    elif kind not in BOARD:
        raise Refused(f"no such kind of question: {str(kind)[:40]!r}")
    return {"kind": kind, "query": document}


async def _ask(desk: Desk, request: Request) -> Response:
    """A question that answers at once."""
    try:
        job = _job(body.read(await request.body()))
        if job["kind"] == "ask" and question(job["query"]).is_heavy:
            return _error(400, "a search or a simulation runs by /api/run")
        message = await _while_connected(request, desk.ask(job, _peer(request)))
    except HeadwayError as error:
        return _error(403 if isinstance(error, Refused) else 400, str(error))
    except Busy:
        return _error(503, "busy: ask again in a second")
    except Late:
        return _error(503, "this took too long for a page: use the command line")
    if "error" in message:
        return _error(message["status"], message["error"])
    return JSONResponse(message["answer"])


def _peer(request: Request) -> Peer:
    """Who asks: an address, and one of its connections."""
    return (request.client.host if request.client else ""), request.client


async def _while_connected(request: Request, answer: Coroutine[Any, Any, Any]) -> Any:
    """An answer, waited for only as long as there is somebody to read it."""
    work, hang_up = asyncio.ensure_future(answer), asyncio.ensure_future(_end(request))
    await asyncio.wait({work, hang_up}, return_when=asyncio.FIRST_COMPLETED)
    hang_up.cancel()
    if not work.done():
        work.cancel()
        raise Busy
    return work.result()


async def _end(request: Request) -> None:
    """Returns when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _run(desk: Desk, request: Request) -> Response:
    """A run: a stream of progress, then the answer; it stops when the client leaves."""
    try:
        document = body.read(await request.body())
        client = document.pop("client", "")
        if not isinstance(client, str) or not CLIENT.fullmatch(client):
            return _error(400, "client: a name of 1 to 40 letters is wanted")
        job = _job(document)
        query = question(job["query"]) if job["kind"] == "ask" else None
    except HeadwayError as error:
        return _error(403 if isinstance(error, Refused) else 400, str(error))
    places = contextlib.ExitStack()
    try:
        places.enter_context(desk.place(client))
    except Busy:
        return _error(503, "a run is under way: cancel it, or ask again in a second")

    async def events() -> AsyncIterator[str]:
        with places:
            key = (tuple(query.argv()), query.upload) if query else None
            run = desk.run(job, key)
            try:
                async for message in run:
                    yield f"data: {json.dumps(message, allow_nan=False)}\n\n"
            finally:
                await run.aclose()

    return StreamingResponse(events(), media_type="text/event-stream")
