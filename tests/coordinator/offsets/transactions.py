"""Offsets that a producer commits in a transaction."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit, TransactionalCommit
from barnabas.protocol.classic_group_records import NO_TOPIC_ID
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.runtime.completion import Completion
from tests.coordinator.classic.classic_bench import GROUP, NO_MEMBER, TOPIC, Bench

WAIT_MS = 54_000
"""How long a commit waits in a group that commits in order."""

PRODUCER = ProducerIdentity(11, 0)


def agree() -> None:
    """The transaction takes part."""


def transactional_commit(
    bench: Bench,
    offset: int = 5,
    *,
    producer: ProducerIdentity = PRODUCER,
    group_id: str = GROUP,
    member: MemberIdentity = NO_MEMBER,
    generation_id: int = -1,
    metadata: str = "",
    check: Callable[[], None] = agree,
) -> Completion[list[ErrorCode]]:
    offsets = [OffsetToCommit(TOPIC, NO_TOPIC_ID, 0, offset, -1, metadata)]
    request = CommitRequest(group_id, member, generation_id, offsets, tells_not_found=False)
    commit = TransactionalCommit(request, producer, check, bench.now_ms + WAIT_MS)
    return bench.offsets.commit_in_transaction(commit)
