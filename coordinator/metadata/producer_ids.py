"""Producer ids one by one, out of durable blocks (KIP-730).

An id is never handed out twice, also not after a crash: what is left of a block is lost with the process.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

from barnabas.coordinator.reply import CoordinatorReply
from barnabas.protocol.errors import ApiError


class ProducerIds:
    """Hands out ids; asks `allocate_block` for more when there are none left, once for all who wait."""

    def __init__(self, allocate_block: Callable[[], CoordinatorReply[range]]) -> None:
        self._allocate_block = allocate_block
        self._left: deque[int] = deque()
        self._waiting: deque[CoordinatorReply[int]] = deque()

    def next_id(self) -> CoordinatorReply[int]:
        """The next id; fails with `ApiError` if no block could be had."""
        reply = CoordinatorReply[int]()
        if self._left:
            reply.complete(self._left.popleft())
            return reply
        self._waiting.append(reply)
        if len(self._waiting) == 1:
            self._allocate_block().add_done_callback(self._allocated)
        return reply

    def _allocated(self, allocation: CoordinatorReply[range]) -> None:
        waiting, self._waiting = self._waiting, deque()
        try:
            self._left.extend(allocation.result())
        except ApiError as error:
            for reply in waiting:
                reply.fail(error)
            return
        for reply in waiting:
            # More may wait than a block has ids for: the rest asks for the next one.
            if self._left:
                reply.complete(self._left.popleft())
            else:
                self.next_id().add_done_callback(partial(_pass_on, reply))


def _pass_on(reply: CoordinatorReply[int], later: CoordinatorReply[int]) -> None:
    try:
        reply.complete(later.result())
    except ApiError as error:
        reply.fail(error)
