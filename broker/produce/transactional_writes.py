"""Verifies that a partition is in its transaction before a write is appended (KIP-890).

Newer clients leave adding the partition to the broker; older ones add it themselves. In both cases the
coordinator is asked immediately before the append, with no await in between. If it decides the transaction's
end after that, the markers come after the append, so that no transaction is left hanging.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coordinator.transaction.transaction import EPOCH_RAISED_FROM
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition

if TYPE_CHECKING:
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator


def verifies_partitions(config: EffectiveConfig) -> bool:
    """The current value of `transaction.partition.verification.enable`."""
    return bool(config.broker_value("transaction.partition.verification.enable"))


class ClientAbility(NamedTuple):
    """The client's knowledge of transactions, by the version of its request."""

    leaves_adding: bool
    """Whether the broker adds the partitions (transaction.version 2)."""
    knows_abortable: bool
    """Whether it knows the error TRANSACTION_ABORTABLE."""


class TransactionalWrites:
    """The writes of one request."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        transactional_id: str,
        ability: ClientAbility,
        *,
        verifies: bool,
    ) -> None:
        """`verifies` is `transaction.partition.verification.enable`; without it older clients are trusted."""
        self._coordinator = coordinator
        self._transactional_id = transactional_id
        self.ability = ability
        self._verifies = verifies
        self._not_added: ApiError | None = None

    async def add(self, producer: ProducerIdentity, partitions: Collection[TopicNamePartition]) -> None:
        """Add the partitions that are not in the transaction, if the client leaves that to the broker.

        If all are in it, as in most requests, this does not wait for the writes of other producers.
        """
        if not self.ability.leaves_adding or self._all_take_part(producer, partitions):
            return
        try:
            await self._coordinator.add_participants(
                self._transactional_id, producer, partitions, client_version=EPOCH_RAISED_FROM
            )
        except ApiError as error:
            self._not_added = without_frames(error)

    def check(self, producer: ProducerIdentity, partition: TopicNamePartition) -> None:
        """Raises the ApiError for the client if the partition is not in the transaction at this moment."""
        if not self.ability.leaves_adding and not self._verifies:
            return
        try:
            takes_part = self._coordinator.takes_part(self._transactional_id, producer, partition)
        except ApiError as error:
            raise self._told(error) from None
        if takes_part:
            return
        if self._not_added is not None:
            raise self._told(without_frames(self._not_added))
        raise self._told(
            ApiError(ErrorCode.transaction_abortable, "The partition is not in the transaction.")
        )

    def _all_take_part(self, producer: ProducerIdentity, partitions: Collection[TopicNamePartition]) -> bool:
        try:
            return all(
                self._coordinator.takes_part(self._transactional_id, producer, partition)
                for partition in partitions
            )
        except ApiError:
            return False  # it may change: the end of a transaction may be under way

    def _told(self, error: ApiError) -> ApiError:
        """The error that producers expect in a response to a write."""
        if error.code is ErrorCode.producer_fenced:
            return ApiError(ErrorCode.invalid_producer_epoch, error.message)
        if error.code is ErrorCode.transaction_abortable and not self.ability.knows_abortable:
            return ApiError(ErrorCode.invalid_txn_state, "Partition was not added to the transaction")
        return error
