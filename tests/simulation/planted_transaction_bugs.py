"""Bugs in acknowledgements in transactions that the broker does not have, planted like those in
`planted_bugs`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from barnabas.coordinator.transaction import record_factory
from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
from barnabas.coordinator.transaction.transaction import Participant
from barnabas.protocol.delivery_state import Condition, PendingAcknowledgement, RecordState, StateRange
from barnabas.protocol.identity import ProducerIdentity, SharePartitionKey
from barnabas.runtime.completion import Completion
from barnabas.share.partition import locks, recorded
from barnabas.share.partition.acknowledgement import AcknowledgeType, TransactionEnd
from tests.simulation.planting import planted

# pyright: reportPrivateUsage=false

_condition_at_load = recorded.condition_at_load
_add = TransactionCoordinator.add_participants
_takes_part: Callable[..., bool] = TransactionCoordinator.takes_part


@planted(TransactionEnd, "type_of")
def counted_at_abort(_: TransactionEnd, pending: PendingAcknowledgement) -> int:
    """An abort has the effect of a commit."""
    return pending.acknowledge_type


@planted(TransactionEnd, "type_of")
def undone_at_commit(*_: object) -> int:
    """A commit has the effect of an abort."""
    return AcknowledgeType.RELEASE


@contextmanager
def pending_forgotten_by_a_restart() -> Generator[None]:
    """A restarted leader does not look at the pending acknowledgements in the recorded state."""

    def condition_at_load(loaded: StateRange, *bounds: int) -> Condition | None:
        is_pending = isinstance(loaded.condition, PendingAcknowledgement)
        return None if is_pending else _condition_at_load(loaded, *bounds)

    def live_state(loaded: StateRange) -> RecordState:
        return loaded.state

    with (
        patch.object(recorded, "condition_at_load", condition_at_load),
        patch.object(recorded, "_live_state", live_state),
    ):
        yield


@planted(locks, "_is_in_transaction")
def administrators_disregard_transactions(_: object) -> bool:
    """An administrator may change a record whose acknowledgement waits for a transaction."""
    return False


@planted(record_factory, "_share_partitions_in")
def share_partitions_forgotten_by_a_restart(_: object) -> frozenset[SharePartitionKey]:
    """A restarted coordinator does not know that share-partitions take part in its transactions."""
    return frozenset()


@contextmanager
def never_added() -> Generator[None]:
    """Acknowledgements wait for a transaction whose coordinator does not know of them."""

    def add_participants(
        self: TransactionCoordinator,
        transactional_id: str,
        producer: ProducerIdentity,
        added: Collection[Participant],
        *,
        client_version: int,
    ) -> Completion[None]:
        partitions = [one for one in added if not isinstance(one, SharePartitionKey)]
        if not partitions:
            return Completion.of(None)
        return _add(self, transactional_id, producer, partitions, client_version=client_version)

    def takes_part(self: TransactionCoordinator, *names: Any) -> bool:
        return isinstance(names[-1], SharePartitionKey) or _takes_part(self, *names)

    with (
        patch.object(TransactionCoordinator, "add_participants", add_participants),
        patch.object(TransactionCoordinator, "takes_part", takes_part),
    ):
        yield
