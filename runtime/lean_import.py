"""Keeps rich and greenlet out of a broker's process.

structlog loads them if they are installed: rich, as it is for the commands, for tracebacks in colour, and
greenlet for contexts of its threads. Our log prints plain tracebacks and the broker has no greenlets. The two
would make the start of a broker a tenth longer and take 5 MB of its memory.
"""

from __future__ import annotations

from barnabas.protocol.lean_import import import_without


def import_structlog_without_extras() -> None:
    """Loads structlog while `rich` and `greenlet` cannot be found; afterwards they can be imported as usual.

    A command line calls it before it imports other modules of the broker. A program that embeds a broker does
    not, and its structlog has all its functions.
    """
    import_without(("rich", "greenlet"), "structlog")
