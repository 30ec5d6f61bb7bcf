"""One consumer's share session with one broker: its epoch and its partitions (pure, KIP-932).

A fetch with epoch 0 that names every partition opens the session, each further request has the next epoch (1,
2, ...), and epoch -1 ends the session. Several requests may be outstanding: the epoch grows when a request is
made. Every error of a session as a whole (it is unknown, its epoch is wrong, the connection is lost) has the
same remedy: another connection with a new session. `ledger` decides about the records of the old session.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.identity import TopicIdPartition

FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1

Batches = Mapping[TopicIdPartition, Sequence[AckBatch]]
"""By partition, the acknowledgements."""

Delays = Mapping[TopicIdPartition, tuple[ReleaseDelay, ...]]
"""By partition, the delays of released records."""

NO_DELAYS: Final[Delays] = MappingProxyType({})


class SessionFetch(NamedTuple):
    """The session fields of a fetch. Added and forgotten partitions are in ascending order."""

    share_session_epoch: int
    added: list[TopicIdPartition]
    forgotten: list[TopicIdPartition]


class ShareSession:
    """The session as it will be once all sent requests have arrived."""

    __slots__ = ("_partitions", "share_session_epoch")

    def __init__(self) -> None:
        self.share_session_epoch = FIRST_EPOCH
        """The epoch of the next request."""
        self._partitions: frozenset[TopicIdPartition] = frozenset()

    @property
    def is_open(self) -> bool:
        return self.share_session_epoch != FIRST_EPOCH

    @property
    def partitions(self) -> frozenset[TopicIdPartition]:
        """The partitions from which the broker fetches."""
        return self._partitions

    def fetch(self, wanted: frozenset[TopicIdPartition]) -> SessionFetch:
        """The next fetch, after which the session holds exactly the partitions `wanted`."""
        added = sorted(wanted - self._partitions)
        forgotten = sorted(self._partitions - wanted)
        self._partitions = wanted
        return SessionFetch(self._move_on(), added, forgotten)

    def acknowledge(self) -> int:
        """The epoch of the next acknowledgement, which may name partitions outside the session."""
        assert self.is_open, "acknowledgements need a session"
        return self._move_on()

    def _move_on(self) -> int:
        current = self.share_session_epoch
        self.share_session_epoch = 1 if current == EPOCH_MAX else current + 1
        return current


def ack_topics(
    added: Iterable[TopicIdPartition], batches: Batches, delays: Delays = NO_DELAYS
) -> list[AckTopic]:
    """The topics of a request that names partitions to fetch from and their acknowledgements."""
    by_topic: dict[UUID, list[AckPartition]] = {}
    for partition in dict.fromkeys((*added, *batches)):
        named = AckPartition(partition.partition, list(batches.get(partition, ())), delays.get(partition, ()))
        by_topic.setdefault(partition.topic_id, []).append(named)
    return [AckTopic(topic_id, partitions) for topic_id, partitions in by_topic.items()]


def forgotten_topics(partitions: Iterable[TopicIdPartition]) -> list[tuple[UUID, list[int]]]:
    """The topics that a fetch removes from the session."""
    by_topic: dict[UUID, list[int]] = {}
    for topic_id, index in partitions:
        by_topic.setdefault(topic_id, []).append(index)
    return list(by_topic.items())
