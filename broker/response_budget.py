"""How many bytes of records one response may hold, so that clients that read slowly cannot exhaust memory.

A response stays in memory until its client has read it. So none holds more than `RESPONSE_BYTES_MAX` of
records, however much was asked for, and responses get smaller the more connections have one that isn't read:
each new one is a fair share of `BUDGET_BYTES` among those connections and its own. What was already handed
out is not taken back. A fetch still gives one batch that is larger than its share, or a consumer would never
get past it. That a connection with unread answers is not read from either is the subject of `connection`.
"""

from typing import Final

RESPONSE_BYTES_MAX: Final = 8 * 1024 * 1024
BUDGET_BYTES: Final = 256 * 1024 * 1024


class ResponseBudget:
    """One for all connections of a broker."""

    __slots__ = ("_paused_count",)

    def __init__(self) -> None:
        self._paused_count = 0

    @property
    def paused_count(self) -> int:
        """Connections whose write buffer is full."""
        return self._paused_count

    def writing_paused(self) -> None:
        """One more connection has a full write buffer."""
        self._paused_count += 1

    def writing_resumed(self) -> None:
        """One such connection has been read, or is gone."""
        assert self._paused_count > 0, "more connections resumed writing than had paused"
        self._paused_count -= 1

    def bytes_max(self) -> int:
        """The most that the next response should hold."""
        return min(RESPONSE_BYTES_MAX, BUDGET_BYTES // (1 + self._paused_count))
