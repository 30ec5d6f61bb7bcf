"""The requests of one member in one share session: ShareFetch and ShareAcknowledge (KIP-932, KIP-1206)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from barnabas.client.share.session import FINAL_EPOCH, ShareSession, ack_topics, forgotten_topics
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.decode.share_fetch import ShareFetchBody
from barnabas.protocol.identity import TopicIdPartition

FETCH_BYTES: Final = 1024 * 1024
"""`max_bytes` of a fetch. Apache Kafka walks over all the batches that it reads: with its clients' default of
50 MB a fetch takes six times as long."""

_BATCH_OPTIMIZED: Final = 0
_RECORD_LIMIT: Final = 1

AckBatches = Mapping[TopicIdPartition, Sequence[AckBatch]]
"""The acknowledgements by partition; ascending and disjoint within each."""


class ShareRequests:
    """Makes the requests of one session, and counts its epoch."""

    def __init__(self, group_id: str, member_id: str) -> None:
        self.session: Final = ShareSession()
        self._group_id = group_id
        self._member_id = member_id

    def fetch(
        self, partitions: Iterable[TopicIdPartition], record_count: int, max_wait_ms: int, *, is_exact: bool
    ) -> ShareFetchBody:
        """Acquires about `record_count` records of these partitions, in whole producer batches.

        With `is_exact` it acquires no more than `record_count`; brokers without KIP-1206 ignore that. Asks
        for ranges without records; Apache Kafka ignores that and sends the records, too.
        """
        step = self.session.fetch(frozenset(partitions))
        return ShareFetchBody(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=step.share_session_epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            max_records=record_count,
            batch_size=record_count,
            share_acquire_mode=_RECORD_LIMIT if is_exact else _BATCH_OPTIMIZED,
            is_renew_ack=False,
            topics=ack_topics(step.added, {}),
            forgotten_topics=forgotten_topics(step.forgotten),
            without_records=True,
        )

    def acknowledge(self, batches: AckBatches, *, renews: bool = False) -> ShareAcknowledgeBody:
        """Acknowledges records, or renews their locks (KIP-1222)."""
        return self._acknowledgement(self.session.acknowledge(), batches, renews=renews)

    def end(self) -> ShareAcknowledgeBody:
        """Ends the session: the broker releases the records that are still locked in it."""
        return self._acknowledgement(FINAL_EPOCH, {}, renews=False)

    def _acknowledgement(self, epoch: int, batches: AckBatches, *, renews: bool) -> ShareAcknowledgeBody:
        return ShareAcknowledgeBody(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=epoch,
            is_renew_ack=renews,
            topics=ack_topics((), batches),
        )
