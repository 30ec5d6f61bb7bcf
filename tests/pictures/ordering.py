"""The pictures of docs/ordering.md, drawn from the code that they explain: the share-partition delivers the
records of the first two, the committed ranges and the ranges of hashes those of the third.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.protocol.committed_ranges import CommittedRanges
from barnabas.protocol.delivery_state import RecordState
from barnabas.protocol.record_keys import KeyHashes, key_hash
from barnabas.protocol.record_keys.hash_range import even_ranges
from barnabas.share.partition.key_order import BatchKeys
from tests.pictures.strips import Look, Square, Step, svg
from tests.share.partition.leader import LIMITS, RECORD_LIMIT, RELEASE, Leader

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
KEYS = "abacabbcab"
HASHES = [key_hash(b"user-" + letter.encode()) for letter in KEYS]
ACCEPT = 1


class ShareGroup:
    """Two members of a share group on one batch of records with these keys, and the steps to draw."""

    def __init__(self, key_run_max: int) -> None:
        self._leader = Leader(limits=LIMITS._replace(key_run_max=key_run_max)).produce(len(KEYS))
        self._holder: dict[int, int] = {}
        self.steps: list[Step] = []
        self._is_ordered = key_run_max > 0
        self._draw("A producer writes ten records")

    def fetch(self, member: int, count: int) -> None:
        leader = self._leader
        plan = leader.partition.plan_acquire(count, leader.limits, RECORD_LIMIT)
        keys = BatchKeys(0, len(KEYS) - 1, KeyHashes(list(range(len(KEYS))), HASHES))
        acquired = leader.partition.acquire(
            plan,
            f"member-{member}",
            leader.log,
            records_max=count,
            batch_size=100,
            acquire_mode=RECORD_LIMIT,
            limits=leader.limits,
            now_ms=0,
            keys=[keys] if leader.partition.keys_until == 0 else [],
        ).acquired
        for first, last, _ in acquired:
            self._holder |= dict.fromkeys(range(first, last + 1), member)
        self._draw(f"Member {member} fetches {count}")

    def acknowledge(self, member: int, offset: int, ack_type: int) -> None:
        self._leader.acknowledge(offset, offset, ack_type, member_id=f"member-{member}")
        del self._holder[offset]
        verb = "releases" if ack_type == RELEASE else "accepts"
        self._draw(f"Member {member} {verb} {offset}")

    def accept_all(self, member: int) -> None:
        for offset in sorted(self._holder):
            if self._holder[offset] == member:
                self.acknowledge(member, offset, ACCEPT)

    def _draw(self, event: str) -> None:
        states = {
            offset: state
            for first, last, state, _ in self._leader.states()
            for offset in range(first, last + 1)
        }
        spso = self._leader.partition.spso
        left = [
            offset for offset in range(spso, len(KEYS)) if states.get(offset) is not RecordState.ACKNOWLEDGED
        ]
        self.steps.append(Step(event, [self._square(offset, left) for offset in range(len(KEYS))]))

    def _square(self, offset: int, left: Sequence[int]) -> Square:
        key = KEYS[offset]
        if offset not in left:
            return Square(key, Look.FINAL)
        if offset in self._holder:
            return Square(key, Look.HELD, str(self._holder[offset]))
        is_behind = any(KEYS[other] == key for other in left if other < offset)
        return Square(key, Look.WAITING if self._is_ordered and is_behind else Look.NEW)


def share_group(key_run_max: int) -> Sequence[Step]:
    """The same requests with and without an order."""
    group = ShareGroup(key_run_max)
    group.fetch(1, 2)
    group.fetch(2, 2)
    group.acknowledge(1, 0, RELEASE)
    group.accept_all(2)
    group.fetch(2, 3)
    return group.steps


def shared_partition() -> Sequence[Step]:
    """Two members with half of the hashes each; they commit the records that they have processed."""
    halves = even_ranges(2)
    owner = {
        key: next(number for number, half in enumerate(halves, 1) if half.has_record(hashed, 0))
        for key, hashed in zip(KEYS, HASHES, strict=True)
    }
    committed = CommittedRanges()
    steps: list[Step] = []

    def draw(event: str, held: Sequence[int] = ()) -> None:
        squares = [_shared_square(offset, owner, committed, held) for offset in range(len(KEYS))]
        steps.append(Step(event, squares, stable=committed.stable_offset + 1))

    of_member = {
        number: [offset for offset, key in enumerate(KEYS) if owner[key] == number] for number in (1, 2)
    }
    draw("Each key belongs to a member")
    draw("Both process their first records", [*of_member[1][:2], *of_member[2][:2]])
    for number in (2, 1):
        committed.commit((offset, offset) for offset in of_member[number][:2])
        draw(f"Member {number} commits them", of_member[1][:2] if number == 2 else ())
    committed.commit((offset, offset) for offset in of_member[2])
    draw("Member 2 commits all its records")
    committed.commit((offset, offset) for offset in of_member[1])
    draw("Member 1, too")
    return steps


def _shared_square(
    offset: int, owner: dict[str, int], committed: CommittedRanges, held: Sequence[int]
) -> Square:
    key = KEYS[offset]
    if offset in committed:
        return Square(key, Look.FINAL)
    return Square(key, Look.HELD if offset in held else Look.NEW, str(owner[key]))


def pictures() -> dict[Path, str]:
    """The files and their contents."""
    return {
        PICTURES / "plain.svg": svg("Records of three keys in a plain share group", share_group(0)),
        PICTURES / "key-order.svg": svg("The same records with share.order=key", share_group(1)),
        PICTURES / "shared-partitions.svg": svg(
            "Two members share a partition by hashes", shared_partition()
        ),
    }


def main() -> None:
    """Writes all pictures."""
    for path, content in pictures().items():
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
