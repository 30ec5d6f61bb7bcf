"""A share fetch that the client repeats, because it lost the connection before the answer.

The member gets the ranges of the first answer again, as far as it holds them from that delivery; their
records are read again. If it holds none of them, this is a fetch like any other.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.share.fetch.kept_answers import Acquired
from barnabas.share.fetch.share_fetch_operation import (
    PartitionFetch,
    ShareFetchInputs,
    ShareFetchOperation,
)
from barnabas.storage.errors import StorageError


class RepeatedFetchOperation(ShareFetchOperation):
    """One repeated request's wait, and the future of its response."""

    def __init__(self, inputs: ShareFetchInputs, acquired: Mapping[TopicIdPartition, Acquired]) -> None:
        """`acquired` are the ranges of the first answer."""
        super().__init__(inputs)
        self._acquired = acquired

    async def _look(self) -> bool:
        fetched = self._hand_out_again()
        if not fetched:
            return await super()._look()
        self._answer(self._begin_look(), fetched, len(fetched))
        return True

    def _hand_out_again(self) -> dict[TopicIdPartition, PartitionFetch]:
        """A partition without a leader is left out: the locks on its records have ended."""
        fetched: dict[TopicIdPartition, PartitionFetch] = {}
        for partition, ranges in self._acquired.items():
            try:
                leader = self._source.lead(SharePartitionKey(self._spec.group_id, *partition))
                if leader is None:
                    continue
                handout = leader.hand_out_again(self._spec.member_id, ranges)
            except (ApiError, StorageError):
                continue
            if handout.acquired:
                self.reserve(handout.size_bytes)
                fetched[partition] = PartitionFetch(handout, 0, None)
        return fetched
