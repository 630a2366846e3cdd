"""Connections of the server: how long each may owe its request or leave its answer unread, and which one gives way where there are many."""

from __future__ import annotations

from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from headway.web.guard import BODY_S

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

