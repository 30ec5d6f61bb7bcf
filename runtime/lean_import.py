"""Keeps rich out of a broker's process.

structlog loads rich for tracebacks in colour if it is installed, as it is for the commands. Our log prints
plain tracebacks, and rich would make the start of a broker a tenth longer and take 4 MB of its memory.
"""

from __future__ import annotations

from barnabas.protocol.lean_import import import_without


def import_structlog_without_rich() -> None:
    """Loads structlog while `rich` cannot be found; afterwards rich can be imported as usual.

    A command line calls it before it imports other modules of the broker. A program that embeds a broker does
    not, and its structlog has all its functions.
    """
    import_without("rich", "structlog")
