"""What one request, one client and all of them together may ask of the page: every number of its limits."""

from __future__ import annotations

BODY_BYTES = 2**20
"""The largest body of a request."""

HEAD_SECONDS = 10.0
"""How long the head of a request may take to arrive, from the opening of the line or the first byte."""

BODY_SECONDS = 10.0
"""How long a whole body may take to arrive."""

SEND_SECONDS = 30.0
"""How long a client may take to read what it is sent, before it is let go."""

N_LINES = 512
"""Connections at a time, those that have not asked for anything included."""

N_REQUESTS = 256
"""Requests at a time, streams included."""

N_STREAMS = 128
"""Streams of events at a time."""

MOVING_SECONDS = 0.2
"""The least time between two steps of chains that are watched: all who watch see the same ones."""

LOOKS_SECOND = 50
"""Looks in a second of all who watch together; each is told when to look again."""

N_WAITING = 128
"""Computations that may wait for their turn: as many as windows, which may all open at once."""

COMPUTE_SECONDS = 2.0
"""How long one move of a play may compute; chains stop where they are then."""

ANSWER_SECONDS = 20.0
"""How long a request waits for its computation, opening the model included."""

N_MODELS = 4
"""Models held open."""

N_SESSIONS = 64
"""Plays that go on at a time; the one that rested longest is forgotten first."""

N_RUNS = 2000
"""Runs that are listed."""

N_ENTRIES = 20_000
"""Entries of folders that are looked through for runs."""

LOG_BYTES = 64 * 2**20
"""How much of the metrics of one run is held."""

N_RESUMED = 2
"""Runs that the page may train at a time."""
