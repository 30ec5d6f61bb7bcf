"""A delayed operation whose answer holds records: the bytes that it reads count against the `ResponseBudget`.

Bytes are reserved as soon as they are read, because an answer may be read in several turns and then wait to
be encoded. The answer passes the reservation to the connection, which gives it back. An operation that ends
without an answer gives it back itself.
"""

from __future__ import annotations

from barnabas.runtime.purgatory import DelayedOperation
from barnabas.runtime.response_budget import EncodedBody, ResponseBudget


class ReservingOperation(DelayedOperation[EncodedBody]):
    """See the module. `hand_over` makes its result."""

    def __init__(self, response_budget: ResponseBudget) -> None:
        """`response_budget` is the broker's."""
        super().__init__()
        self._response_budget = response_budget
        self._reserved_bytes = 0

    def reserve(self, record_bytes: int) -> None:
        """Reserve these bytes, which were read for the answer, unless the operation is done already."""
        if not self.done:
            self._reserved_bytes += self._response_budget.take(record_bytes)

    def hand_over(self, body: EncodedBody) -> None:
        """Answer with `body`, which takes over the reservation."""
        reserved_bytes, self._reserved_bytes = self._reserved_bytes, 0
        self.complete(EncodedBody(body.buffers, reserved_bytes, body.throttle_ms))

    def give_back(self) -> None:
        """End the reservation: the records that were read are not sent."""
        self._response_budget.give_back(self._reserved_bytes)
        self._reserved_bytes = 0

    def fail(self, error: Exception) -> None:
        self.give_back()
        super().fail(error)
