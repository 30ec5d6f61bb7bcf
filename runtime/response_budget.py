"""The bytes of records that responses may hold, so that clients that do not read cannot exhaust memory.

A response stays in memory until its client has read it. So no response holds more than `RESPONSE_BYTES_MAX`
bytes of records. These bytes are reserved in a budget when they are read from the log, and the connection
gives them back. Each new response may use a fixed part of the remaining budget, so that many responses at
once do not use it up. A fetch still returns one batch that is larger than its part, or a consumer would never
get past that batch. When nothing is left, fetches wait as if there were no records: they look again when one
of their partitions changes, and at the end of their wait. Clients make room by reading, and idle ones by
being disconnected. Bytes that the socket has accepted count as read.
"""

from typing import Final, NamedTuple

from barnabas.protocol.varint import Buffer
from barnabas.runtime.turns import ReadTurns

RESPONSE_BYTES_MAX: Final = 8 * 1024 * 1024
BUDGET_BYTES: Final = 256 * 1024 * 1024
_SHARES: Final = 8
"""A response may use one part in this number of the remaining budget. That is `RESPONSE_BYTES_MAX` or more
until three quarters of the budget are used.
"""


class ResponseBudget:
    """One for all connections of a broker."""

    __slots__ = ("_fetch_bytes_max", "_taken_bytes", "read_turns")

    def __init__(self, fetch_bytes_max: int = RESPONSE_BYTES_MAX) -> None:
        """`fetch_bytes_max` (fetch.max.bytes) may be less than `RESPONSE_BYTES_MAX`."""
        self._fetch_bytes_max = fetch_bytes_max
        self._taken_bytes = 0
        self.read_turns: Final = ReadTurns()
        """Bounds what the fetches of all connections read in one pass of the loop."""

    @property
    def taken_bytes(self) -> int:
        """The reserved bytes: those in responses that their clients have not read."""
        return self._taken_bytes

    def bytes_max(self) -> int:
        """The most bytes of records that the next response should hold; 0 if it should hold none."""
        bytes_max = max(BUDGET_BYTES - self._taken_bytes, 0) // _SHARES
        return min(RESPONSE_BYTES_MAX, self._fetch_bytes_max, bytes_max)

    def take(self, record_bytes: int) -> int:
        """Reserve the bytes of a response; returns the number to give back later."""
        self._taken_bytes += record_bytes
        return record_bytes

    def give_back(self, reserved_bytes: int) -> None:
        """End a reservation: the clients have read these bytes, or are gone."""
        self._taken_bytes -= reserved_bytes
        assert self._taken_bytes >= 0, "more was given back than had been taken"


class EncodedBody(NamedTuple):
    """A response that its handler has encoded itself, in the version of the request."""

    buffers: list[Buffer]
    reserved_bytes: int = 0
    """Its reservation in the `ResponseBudget`, to be given back once the client has read it."""
    throttle_ms: int = 0
    """The pause of the client that its quotas ask for, by the handler's charges."""
