"""Acknowledges ranges so that a range with an ended lock doesn't affect the others.

The broker accepts all acknowledgements of a partition in a request, or refuses them all. Acknowledgements
that were refused because of a lock are halved and sent again, `HALVINGS_MAX` times; then they are given up,
and the records will be redelivered. Both halves have the same number of offsets, and may cut a range:
neighbours that were acquired one after the other are one range, and only some of their locks may have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.pipeline.share_requests import AckBatches
from barnabas.pipeline.share_source.leader_session import LeaderSession
from barnabas.pipeline.share_source.ranges import cut_front, offset_count
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

HALVINGS_MAX: Final = 5
"""At most 63 requests, if every lock of many ranges has ended."""


class Unsettled(NamedTuple):
    """A range that the broker has refused."""

    partition: TopicIdPartition
    batch: AckBatch
    code: ErrorCode


async def settle(
    session: LeaderSession, settlement: AckBatches, halvings_max: int = HALVINGS_MAX
) -> list[Unsettled]:
    """Returns the refused ranges. Raises the errors of `LeaderSession.acknowledge`: then all are unknown."""
    said = {partition: batches for partition, batches in settlement.items() if batches}
    if not said:
        return []
    unsettled: list[Unsettled] = []
    lower: dict[TopicIdPartition, Sequence[AckBatch]] = {}
    upper: dict[TopicIdPartition, Sequence[AckBatch]] = {}
    for partition, code in (await session.acknowledge(said)).items():
        batches = said[partition]
        if code is ErrorCode.none:
            continue
        if code is ErrorCode.invalid_record_state and offset_count(batches) > 1 and halvings_max > 0:
            lower[partition], upper[partition] = _halves(batches)
        else:
            unsettled += [Unsettled(partition, batch, code) for batch in batches]
    for half in (lower, upper):
        unsettled += await settle(session, half, halvings_max - 1)
    return unsettled


def _halves(batches: Sequence[AckBatch]) -> tuple[Sequence[AckBatch], Sequence[AckBatch]]:
    """The lower and the upper half of the offsets; each batch has one type for all of its offsets."""
    return cut_front(batches, offset_count(batches) // 2)
