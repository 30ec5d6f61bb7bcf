"""How many bytes of records one response may hold, so that clients that don't read cannot exhaust memory.

A response stays in memory until its client has read it. So none holds more than `RESPONSE_BYTES_MAX` of
records, however much was asked for, and what a response holds is taken from a budget when it is read from
the log, and given back by its connection. Responses get smaller the less is left: each new one is a share of
it, so that many at once don't use it up. A fetch still gives one batch that is larger than its share, or a
consumer would never get past it; only when nothing is left do fetches wait as if there were no records, until
somebody reads or is cut off for being idle. What the socket has taken counts as read.
"""

from typing import Final, NamedTuple

from barnabas.protocol.varint import Buffer

RESPONSE_BYTES_MAX: Final = 8 * 1024 * 1024
BUDGET_BYTES: Final = 256 * 1024 * 1024
_SHARES: Final = 8
"""A response gets this part of what is left, which is all it may hold until three quarters are used up."""


class ResponseBudget:
    """One for all connections of a broker."""

    __slots__ = ("_fetch_bytes_max", "_taken_bytes")

    def __init__(self, fetch_bytes_max: int = RESPONSE_BYTES_MAX) -> None:
        """`fetch_bytes_max` (fetch.max.bytes) may allow a response less than `RESPONSE_BYTES_MAX`."""
        self._fetch_bytes_max = fetch_bytes_max
        self._taken_bytes = 0

    @property
    def taken_bytes(self) -> int:
        """What responses hold that their clients have not got."""
        return self._taken_bytes

    def bytes_max(self) -> int:
        """The most that the next response should hold; 0 if it should hold no records at all."""
        bytes_max = max(BUDGET_BYTES - self._taken_bytes, 0) // _SHARES
        return min(RESPONSE_BYTES_MAX, self._fetch_bytes_max, bytes_max)

    def take(self, record_bytes: int) -> int:
        """A response with so much in it was read; answers what is to be given back."""
        self._taken_bytes += record_bytes
        return record_bytes

    def give_back(self, reserved_bytes: int) -> None:
        """Clients have got responses for which so much was taken, or are gone."""
        self._taken_bytes -= reserved_bytes
        assert self._taken_bytes >= 0, "more was given back than had been taken"


class EncodedBody(NamedTuple):
    """A response that its handler has encoded itself, for the version that was asked for."""

    buffers: list[Buffer]
    reserved_bytes: int = 0
    """What was taken of the `ResponseBudget` for it, to be given back once the client has got it."""
    throttle_ms: int = 0
    """For how long the client is to wait because of what the handler charged to its quotas."""
