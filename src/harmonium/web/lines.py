"""The lines to clients before they are requests: a head must arrive in time, and there are only so many."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from harmonium.web.limits import HEAD_SECONDS, N_LINES


class Line(H11Protocol):
    """A connection that is closed where the head of its next request does not arrive, or where there are too many.

    uvicorn itself waits for a head for ever: whoever opens lines and says nothing could use up all that there are.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        if len(self.connections) > N_LINES:
            transport.abort()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came; what is not yet a whole head has until its time is over, however often it comes."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._late is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._late = asyncio.get_running_loop().call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
