"""All promises to ordinary clients in a run: to members of groups and to producers of transactions."""

from __future__ import annotations

from barnabas.protocol.identity import TopicIdPartition
from tests.simulation.membership_model import GenerationModel, ReconciliationModel
from tests.simulation.offset_model import OffsetModel
from tests.simulation.sharing_model import SharingModel
from tests.simulation.transaction_model import TransactionsModel


class OrdinaryModel:
    """Offsets, memberships, shares, transactions."""

    def __init__(self) -> None:
        self.offsets: dict[tuple[str, TopicIdPartition], OffsetModel] = {}
        self.generations: dict[str, GenerationModel] = {}
        self.reconciliations: dict[str, ReconciliationModel] = {}
        self.sharing = SharingModel("sharing")
        """The group whose members share partitions."""
        self.transactions = TransactionsModel()
        self.incarnation = 0
        """Grows when power was lost without a promise. An answer from before no longer counts."""

    def committed(self, group_id: str, partition: TopicIdPartition) -> OffsetModel:
        name = f"{group_id}/{partition.topic_id.hex[:4]}-{partition.partition}"
        return self.offsets.setdefault((group_id, partition), OffsetModel(name))

    def generation(self, group_id: str) -> GenerationModel:
        return self.generations.setdefault(group_id, GenerationModel(group_id))

    def reconciliation(self, group_id: str) -> ReconciliationModel:
        return self.reconciliations.setdefault(group_id, ReconciliationModel(group_id))

    def end_process(self, now_ms: float) -> None:
        """A process has ended, with all its work under way."""
        for offsets in self.offsets.values():
            offsets.end_process(now_ms)
        self.sharing.end_process(now_ms)

    def give_in(self, now_ms: float) -> None:
        """Power was lost without a promise."""
        self.incarnation += 1
        for offsets in self.offsets.values():
            offsets.give_in(now_ms)
        for generations in self.generations.values():
            generations.forget()
        for reconciliation in self.reconciliations.values():
            reconciliation.forget()
        self.sharing.give_in()
        self.transactions.lose()
