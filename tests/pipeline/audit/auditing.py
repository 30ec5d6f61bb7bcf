"""Replays written logs without Spark: the rows of an audit's task, by table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.pipeline.audit.log_replay import DELIVERIES, FINDINGS, ReplayTask, replay
from barnabas.pipeline.audit.tables import HISTORY, VIOLATION
from barnabas.pipeline.log_source.directories import find_partitions
from barnabas.pipeline.log_source.slicing import LogBounds, slice_partition

Row = dict[str, Any]


class Audited:
    """The tables of one partition: that of this topic and number, or the only one in the data directory."""

    def __init__(
        self,
        directory: Path,
        place: tuple[str, int] | None = None,
        *,
        groups: Sequence[str] | None = None,
        raise_damage: bool = True,
    ) -> None:
        folders = find_partitions([str(directory)], None)
        (folder,) = (one for one in folders if place in (None, (one.topic, one.partition)))
        pieces = slice_partition(folder, LogBounds(), 2**62, tolerant=not raise_damage)
        self._task = ReplayTask(
            pieces=pieces,
            is_cut=folder.segments[0].base_offset > 0,
            log_start_offset=folder.log_start_offset,
            groups=groups,
            raise_damage=raise_damage,
        )
        self._findings: dict[str, list[Row]] = defaultdict(list)
        for row in self._rows(FINDINGS):
            self._findings[row["table"]].append({"group": row["group"], **json.loads(row["row"])})

    @property
    def deliveries(self) -> list[Row]:
        return self._rows(DELIVERIES)

    @property
    def violations(self) -> list[Row]:
        return self.table(VIOLATION)

    @property
    def checks(self) -> list[str]:
        """The names of the checks that found something, in the order of the log."""
        return [row["check"] for row in self.violations]

    @property
    def history(self) -> Row:
        """Of the one share-partition that there is."""
        (row,) = self.table(HISTORY)
        return row

    def table(self, name: str) -> list[Row]:
        return self._findings[name]

    def _rows(self, answer: str) -> list[Row]:
        return [row for batch in replay(self._task, answer) for row in batch.to_pylist()]


def outcomes(audited: Audited) -> list[tuple[object, ...]]:
    """The deliveries, without their times and their letters."""
    names = ("firstOffset", "lastOffset", "deliveryCount", "outcome", "cause", "member", "controlOffset")
    return [tuple(row[name] for name in names) for row in audited.deliveries]


def offsets_of(rows: Sequence[Row], **wanted: object) -> list[int]:
    """Every offset of the ranges whose columns are as wanted, ascending."""
    return sorted(
        offset
        for row in rows
        if all(row[name] == value for name, value in wanted.items())
        for offset in range(row["firstOffset"], row["lastOffset"] + 1)
    )
