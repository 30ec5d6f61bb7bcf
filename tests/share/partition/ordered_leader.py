"""A share-partition with an order of keys, over a log of one batch."""

from __future__ import annotations

from barnabas.protocol.delivery_state import StateRange
from barnabas.protocol.record_keys import KeyHashes
from barnabas.share.partition.key_order import BatchKeys
from tests.share.partition.leader import BATCH_OPTIMIZED, LIMITS, Leader


class OrderedLeader(Leader):
    """Its log is one batch of three records of one key; without hashes it is delivered alone. Those of
    `others` follow. It begins with the recorded `states`.
    """

    def __init__(
        self,
        keys: KeyHashes | None,
        *others: BatchKeys,
        key_run_max: int = 3,
        states: tuple[StateRange, ...] = (),
    ) -> None:
        super().__init__(limits=LIMITS._replace(key_run_max=key_run_max), states=states)
        self._keys = [BatchKeys(0, 2, keys), *others]
        self.produce(*(one.last_offset - one.base_offset + 1 for one in self._keys))

    def take(self, member_id: str) -> dict[int, int]:
        """The delivery count of each acquired record."""
        plan = self.partition.plan_acquire(500, self.limits, BATCH_OPTIMIZED)
        acquired = self.partition.acquire(
            plan,
            member_id,
            self.log if plan.reads else [],
            records_max=500,
            batch_size=500,
            acquire_mode=BATCH_OPTIMIZED,
            limits=self.limits,
            now_ms=self.now_ms,
            keys=self._keys,
        ).acquired
        return {offset: count for first, last, count in acquired for offset in range(first, last + 1)}
