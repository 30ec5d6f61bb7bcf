"""The acknowledgements of a batch that is done: accepted, except for the user's decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.pipeline.share_source.decisions import Decisions
from barnabas.pipeline.share_source.ledger import DoneLedger
from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.ranges import AcquiredRange, OffsetRange, intersect, subtract, union
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.identity import TopicIdPartition

ACCEPT: Final = int(AcknowledgeType.ACCEPT)
RELEASE: Final = int(AcknowledgeType.RELEASE)
REJECT: Final = int(AcknowledgeType.REJECT)


class Verdicts(NamedTuple):
    """The verdicts about one partition's ranges, each ascending, all disjoint."""

    accept: list[OffsetRange]
    release: list[OffsetRange]
    reject: list[OffsetRange]

    def of(self, held: list[OffsetRange]) -> list[AckBatch]:
        """The acknowledgements for the broker, which accepts only `held` ranges; ascending."""
        batches = [
            AckBatch(first, last, (acknowledge_type,))
            for acknowledge_type, ranges in (
                (ACCEPT, self.accept),
                (RELEASE, self.release),
                (REJECT, self.reject),
            )
            for first, last in intersect(ranges, held)
        ]
        return sorted(batches)

    def note_lost(self, partition: TopicIdPartition, held: list[OffsetRange], ledger: DoneLedger) -> None:
        """Notes ranges whose locks are lost, because they will come again; released ones do so anyway."""
        ledger.note_done(partition, subtract(self.accept, held))
        ledger.note_rejected(partition, subtract(self.reject, held))


def verdicts_on(batch: ShareOffset, decisions: Decisions) -> Mapping[TopicIdPartition, Verdicts]:
    """By partition, the verdicts about a batch; of two decisions about one record the rejection wins."""
    return {
        partition: _verdicts(ranges, decisions, (batch.topics[partition.topic_id], partition.partition))
        for partition, ranges in batch.batch.items()
    }


def _verdicts(ranges: Iterable[AcquiredRange], decisions: Decisions, name: tuple[str, int]) -> Verdicts:
    offsets = union(ranges)
    reject = intersect(offsets, decisions.reject.get(name, []))
    release = subtract(intersect(offsets, decisions.release.get(name, [])), reject)
    return Verdicts(subtract(offsets, union(reject, release)), release, reject)


def redelivered(ranges: Iterable[AcquiredRange], acknowledge_type: int) -> list[AckBatch]:
    """The acknowledgements of ranges that were done before."""

    return [AckBatch(first, last, (acknowledge_type,)) for first, last, _ in ranges]
