"""The leader's view of dead letters: where one goes, and who writes it (KIP-1191)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.protocol.delivery_state import LetterPlace, StateRange
from barnabas.protocol.identity import SharePartitionKey

if TYPE_CHECKING:
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader


class DeadLetterWriter(Protocol):
    """Writes the dead letters of Archiving records (KIP-1191), see `share/dead_letters`."""

    def place(self, key: SharePartitionKey) -> LetterPlace:
        """Where a dead letter that is decided now goes; an unknown place if there is no usable topic yet."""
        ...

    def write(
        self, leader: SharePartitionLeader, letters: Sequence[StateRange], *, may_be_written: bool
    ) -> None:
        """Write these letters, later; `may_be_written` if an earlier leader may have written them."""
        ...

    def is_writing(self, leader: SharePartitionLeader) -> bool:
        """Whether letters of the leader are not written yet."""
        ...
