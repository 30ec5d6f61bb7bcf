"""A delayed operation whose answer holds records: the bytes that it reads count against the `ResponseBudget`.

Records count from the moment that they are read, since an answer may take several turns to read and wait to
be encoded. With the answer the reservation is the connection's to give back; without one it is given back
here.
"""

from __future__ import annotations

from barnabas.runtime.purgatory import DelayedOperation
from barnabas.runtime.response_budget import EncodedBody, ResponseBudget


class ReservingOperation(DelayedOperation[EncodedBody]):
    """See the module. Its result is made by `hand_over`."""

    def __init__(self, response_budget: ResponseBudget) -> None:
        """`response_budget` is the broker's."""
        super().__init__()
        self._response_budget = response_budget
        self._reserved_bytes = 0

    def reserve(self, record_bytes: int) -> None:
        """Count these bytes, which were read for the answer, unless the operation is done already."""
        if not self.done:
            self._reserved_bytes += self._response_budget.take(record_bytes)

    def hand_over(self, body: EncodedBody) -> None:
        """Answer with `body`, which takes the reservation along."""
        reserved_bytes, self._reserved_bytes = self._reserved_bytes, 0
        self.complete(EncodedBody(body.buffers, reserved_bytes, body.throttle_ms))

    def give_back(self) -> None:
        """The records that were read do not go out."""
        self._response_budget.give_back(self._reserved_bytes)
        self._reserved_bytes = 0

    def fail(self, error: Exception) -> None:
        self.give_back()
        super().fail(error)
