"""Who may talk to the page, and how much: host, origin, token, sizes and times, before any route is asked."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harmonium.web.limits import BODY_BYTES, BODY_SECONDS, N_REQUESTS, SEND_SECONDS

API = "/api/"
"""Where the token is needed; what lies elsewhere is the code of the page, the same for everybody."""

LOCAL = ("127.0.0.1", "localhost", "::1")
NOTEBOOKS = ("http://localhost:*", "http://127.0.0.1:*", "https://localhost:*", "https://127.0.0.1:*")
"""Pages that may show the page inside of theirs where it was opened for a notebook."""


def new_token() -> str:
    """Return a token that cannot be guessed: 256 bits."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """Who may come in: the token, the names by which the server may be called, and the pages that may frame it.

    With `any_address` it may also be called by any number of an interface (`--host 0.0.0.0`): a page elsewhere that
    makes its own name point here is still refused, since it calls by that name.
    """

    token: str
    hosts: tuple[str, ...] = LOCAL
    any_address: bool = False
    frames: tuple[str, ...] = ()

    def admits(self, host: str) -> bool:
        """Return whether the server may be called by this name, a port left out of account."""
        name = _hostname(host)
        if name is None:
            return False
        return name in self.hosts or (self.any_address and _is_address(name))

    def policy(self) -> str:
        """Return the content security policy: nothing but our own files, no inline scripts, no inline styles."""
        frames = " ".join(("'self'", *self.frames))
        return (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
            f"base-uri 'none'; form-action 'none'; frame-ancestors {frames}"
        )


def _hostname(host: str) -> str | None:
    try:
        name = urlsplit(f"//{host}").hostname
        _ = urlsplit(f"//{host}").port
    except ValueError:
        return None
    return None if "@" in host or "/" in host else name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Refused(Exception):  # noqa: N818  (an answer, not a failure)
    """A request that is not answered, with the status and the words that say why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Guard:
    """Stands before the app: refuses in words, counts bodies and clients, and adds the headers that browsers heed."""

    app: ASGIApp
    access: Access
    n_open: int = field(default=0, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no WebSockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        guarded = self._sender(send)
        self.n_open += 1
        try:
            self._check(scope)
            await self.app(scope, _limited(receive), guarded)
        except Refused as refusal:
            await guarded_answer(guarded, refusal.status, str(refusal))
        except (TimeoutError, ClientDisconnect):  # a client that does not read, or left: the connection ends here
            return
        finally:
            self.n_open -= 1

    def _check(self, scope: Scope) -> None:
        headers, path = Headers(scope=scope), str(scope["path"])
        if self.n_open > N_REQUESTS:
            raise Refused(429, f"More than {N_REQUESTS} requests at a time. Close some windows and try again.")
        if len(headers.getlist("host")) != 1 or not self.access.admits(headers["host"]):
            raise Refused(421, "This server is not called by that name. Open the link that it printed.")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            raise Refused(403, "Requests from other pages are not answered.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise Refused(405, f"{scope['method']} is not a method of this page.")
        size = headers.get("content-length", "0")
        if not (size.isascii() and size.isdigit()) or int(size[:12]) > BODY_BYTES:
            raise Refused(413, f"A request may hold at most {BODY_BYTES:,} bytes.")
        if path.startswith(API) and not self._has_token(headers.get("authorization", "")):
            raise Refused(401, "The token is missing or wrong. Open the link that harmonium serve printed.")

    def _has_token(self, authorization: str) -> bool:
        kind, _, token = authorization.partition(" ")
        return kind == "Bearer" and hmac.compare_digest(token.encode(), self.access.token.encode())

    def _sender(self, send: Send) -> Send:
        more = [
            (b"content-security-policy", self.access.policy().encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await asyncio.wait_for(send(message), SEND_SECONDS)

        return guarded


def _limited(receive: Receive) -> Receive:
    """Return a source of messages that ends with words where a body is too large or comes too slowly."""
    total, end = 0, asyncio.get_running_loop().time() + BODY_SECONDS

    async def limited() -> Message:
        nonlocal total
        if total < 0:  # the body is whole: what comes is only the end of the connection
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), end - asyncio.get_running_loop().time())
        except TimeoutError:
            raise Refused(408, f"The request did not arrive within {BODY_SECONDS:g} seconds.") from None
        if message["type"] == "http.request":
            total += len(message.get("body", b""))
            if total > BODY_BYTES:
                raise Refused(413, f"A request may hold at most {BODY_BYTES:,} bytes.")
            if not message.get("more_body", False):
                total = -1
        return message

    return limited


async def guarded_answer(send: Send, status: int, text: str) -> None:
    """Send a refusal as JSON, and let the connection end with it: what is left of the request is not read."""
    body = json.dumps({"error": text}).encode()
    headers: Iterable[Any] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})
