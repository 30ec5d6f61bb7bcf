"""The bounds of producer batches, from a read of the log."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeAlias

from barnabas.storage.format.control_runs import ControlRuns

ProducerBatches: TypeAlias = Sequence[tuple[int, int]]
"""(base_offset, last_offset) of each, ascending, each once, without share control batches; one at least."""


def first_reaching(batches: ProducerBatches, offset: int) -> int:
    """The index of the first batch that ends at or behind `offset`: usually the first one, or the last."""
    if offset <= batches[0][1]:
        return 0
    if len(batches) > 1 and batches[-2][1] < offset <= batches[-1][1]:
        return len(batches) - 1
    return bisect_left(batches, offset, key=_last_offset_of)


def end_of_batch(batches: ProducerBatches, offset: int) -> int:
    """The last offset of the batch that holds `offset`, or `offset` itself if it is in a hole."""
    base_offset, last_offset = batches[first_reaching(batches, offset)]
    return last_offset if base_offset <= offset else offset


def piece_ends(
    control_runs: ControlRuns,
    batches: ProducerBatches,
    first_offset: int,
    last_offset: int,
    batch_size: int,
) -> list[int]:
    """The last offsets of the pieces of at least `batch_size` records, cut where producer batches begin."""
    ends: list[int] = []
    if control_runs.data_count(first_offset, last_offset) > batch_size:
        for base_offset, _ in batches:
            if base_offset > last_offset:
                break
            if base_offset > first_offset:
                piece_last_offset = control_runs.previous_data_offset(base_offset - 1)
                if control_runs.data_count(first_offset, piece_last_offset) >= batch_size:
                    ends.append(piece_last_offset)
                    first_offset = base_offset
    ends.append(last_offset)
    return ends


def base_offset_of(batch: tuple[int, int]) -> int:
    return batch[0]


def _last_offset_of(batch: tuple[int, int]) -> int:
    return batch[1]
