"""Producer ids, one by one, out of durable blocks (KIP-730).

No id is given out twice, also not after a crash: the rest of a block is lost with the process.
"""

from collections import deque
from collections.abc import Callable

from barnabas.runtime.completion import Completion


class ProducerIds:
    """Gives out ids; asks `allocate_block` for more when none are left, once for all waiting callers."""

    def __init__(self, allocate_block: Callable[[], Completion[range]]) -> None:
        self._allocate_block = allocate_block
        self._left: deque[int] = deque()
        self._waiting: deque[Completion[int]] = deque()

    def next_id(self) -> Completion[int]:
        """The next id; fails with the error of the block if none could be allocated."""
        if self._left:
            return Completion.of(self._left.popleft())
        reply: Completion[int] = Completion()
        self._waiting.append(reply)
        if len(self._waiting) == 1:
            allocation: Completion[range] = Completion()
            allocation.when_done(self._allocated)
            allocation.end_with(self._allocate_block)
        return reply

    def _allocated(self, allocation: Completion[range]) -> None:
        waiting, self._waiting = self._waiting, deque()
        if allocation.error is not None:
            for reply in waiting:
                reply.fail(allocation.error)
            return
        self._left.extend(allocation.result())
        for reply in waiting:
            # More callers may wait than a block has ids; the others wait for the next block.
            if self._left:
                reply.complete(self._left.popleft())
            else:
                reply.end_with(self.next_id)
