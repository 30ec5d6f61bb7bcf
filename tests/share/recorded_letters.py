"""Dead letters that are due, for tests of leaders without topics to write them to."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.delivery_state import LetterPlace, StateRange
from barnabas.protocol.identity import SharePartitionKey
from barnabas.share.leader.share_partition_leader import SharePartitionLeader


class RecordedLetters:
    """A `DeadLetterWriter` that keeps the letters in `due`, and writes none."""

    def __init__(self) -> None:
        self.due: list[StateRange] = []

    def place(self, key: SharePartitionKey) -> LetterPlace:
        return LetterPlace()

    def write(
        self, leader: SharePartitionLeader, letters: Sequence[StateRange], *, may_be_written: bool
    ) -> None:
        self.due += letters

    def is_writing(self, leader: SharePartitionLeader) -> bool:
        return bool(self.due)
