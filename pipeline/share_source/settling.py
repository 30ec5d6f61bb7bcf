"""Acknowledges ranges so that one whose lock has ended doesn't spoil the others.

The broker takes what a request says of a partition as a whole, or refuses it. What was refused because of a
lock is halved and said again, `HALVINGS_MAX` times; what is refused then is given up: it will be redelivered.
Halves have equally many offsets, whatever ranges they are in: neighbours that were acquired one after the
other are one range, and the locks of only some of them may have ended.
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
"""At most 63 requests, should every lock of many ranges have ended."""


class Unsettled(NamedTuple):
    """A range that the broker has refused."""

    partition: TopicIdPartition
    batch: AckBatch
    code: ErrorCode


async def settle(
    session: LeaderSession, settlement: AckBatches, halvings_max: int = HALVINGS_MAX
) -> list[Unsettled]:
    """What was not taken. Raises as `LeaderSession.acknowledge` does: then nothing is known of any of it."""
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
    """The lower and the upper half of the offsets; each batch says one thing of all of its own."""
    return cut_front(batches, offset_count(batches) // 2)
