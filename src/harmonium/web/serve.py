"""Serve the page: a socket of its own, the link with its token, and uvicorn around the app."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

import torch
import uvicorn

from harmonium.web.app import make_app
from harmonium.web.folder import Folder
from harmonium.web.lines import Line
from harmonium.web.security import LOCAL, NOTEBOOKS, Access, new_token
from harmonium.web.watch import Watcher

PORT = 8765
_ANY = ("0.0.0.0", "::", "")


@dataclass(frozen=True)
class Settings:
    """What is served, and to whom. Port 0 takes any that is free; a taken default port gives way to one."""

    root: Path
    host: str = "127.0.0.1"
    port: int | None = None
    data_dir: Path | None = None
    notebook: bool = False

    @property
    def is_local(self) -> bool:
        """Whether only this computer can reach it."""
        return self.host in LOCAL


class PageServer(uvicorn.Server):
    """Tells those who watch that it ends: it would wait for their streams, and then break them off."""

    def __init__(self, config: uvicorn.Config, watcher: Watcher) -> None:
        super().__init__(config)
        self.watcher = watcher

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then the rest."""
        self.watcher.close()
        await super().shutdown(sockets)


@dataclass
class Serving:
    """A page that is ready to be served: its link, with the token in its fragment, which is never sent anywhere."""

    link: str
    server: uvicorn.Server
    bound: socket.socket

    def run(self) -> None:
        """Serve until a signal, or `server.should_exit`, ends it."""
        self.server.run(sockets=[self.bound])


def prepare(settings: Settings, route: str = "/") -> Serving:
    """Make the page of a folder, ready at its address."""
    if not settings.root.is_dir():
        raise ValueError(f"There is no folder {settings.root}. Make it by a first run: harmonium demo")
    torch.set_num_threads(1)  # training has the other processors
    bound = _bound(settings)
    port = bound.getsockname()[1]
    hosts = (*LOCAL, *({settings.host, socket.gethostname().lower()} if not settings.is_local else ()))
    access = Access(new_token(), hosts, settings.host in _ANY, NOTEBOOKS if settings.notebook else ())
    folder = Folder(settings.root.resolve(), settings.data_dir)
    watcher = Watcher(folder)
    config = uvicorn.Config(
        make_app(folder, watcher, access),
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=16 * 1024,
        ws="none",
        http=Line,
        loop="asyncio",
    )
    name = "127.0.0.1" if settings.host in _ANY else settings.host
    link = f"http://{f'[{name}]' if ':' in name else name}:{port}/#{route}?token={access.token}"
    return Serving(link, PageServer(config, watcher), bound)


def _bound(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    for port in (PORT, 0) if settings.port is None else (settings.port,):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((settings.host, port))
            found.listen(128)  # a browser that opens the link at once waits, where it would be refused
        except OSError as error:
            found.close()
            if port == PORT and settings.port is None:
                continue  # another page is served there: any free port will do
            raise ValueError(
                f"{settings.host}:{port} cannot be served at ({error.strerror}). Choose another --port."
            ) from error
        return found
    raise ValueError(f"No free port was found at {settings.host}.")
