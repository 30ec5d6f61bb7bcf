"""The files with decisions about single records of a batch, from `foreachBatch` to the source's reader.

The function of `foreachBatch` and the reader run on the driver's machine, in two processes. The function's
decisions are in files under the option `ackDir`, any directory or URI that PyArrow can write to from that
machine. There is one file per batch id, which is replaced when a batch is repeated. Records that no file
names are accepted. A directory belongs to one query, like its checkpoint.

When the reader plans a batch, Spark's log has the offset with the results of earlier files, so the reader
removes them. So the files after a batch are those of that batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, cast

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.ranges import OffsetRange, union
from barnabas.pipeline.share_source.storage import Directory

Decision = Literal["accept", "release", "reject"]
DECISIONS: Final[tuple[Decision, ...]] = ("accept", "release", "reject")

TopicRanges = Mapping[tuple[str, int], list[OffsetRange]]
"""By topic and partition."""

_VERSION: Final = 1
_SUFFIX: Final = ".decisions.json"


class Decisions(NamedTuple):
    """The records that are not accepted. A record in both is rejected."""

    release: TopicRanges
    reject: TopicRanges


NONE: Final = Decisions({}, {})


class DecisionFiles:
    """The files under one `ackDir`."""

    def __init__(self, uri: str) -> None:
        """Raises `PipelineError` for an unusable directory."""
        self._directory = Directory("ackDir", uri)

    def write(self, batch_id: int, decided: Iterable[tuple[str, int, int, Decision]]) -> None:
        """Writes a batch's decisions: topic, partition, offset, decision. Accepted records may be left out.

        Replaces the batch's earlier decisions.
        """
        members = {
            "version": _VERSION,
            "batch": batch_id,
            **{name: _to_json(ranges) for name, ranges in _gathered(decided).items()},
        }
        self._directory.write(f"{batch_id:012d}{_SUFFIX}", json.dumps(members).encode())

    def read(self) -> Decisions:
        """The decisions in all files. Raises `PipelineError`, which names the file, for any other file."""
        release: dict[tuple[str, int], list[OffsetRange]] = {}
        reject: dict[tuple[str, int], list[OffsetRange]] = {}
        for name in self._directory.names(_SUFFIX):
            for decided, to in (("release", release), ("reject", reject)):
                for key, ranges in self._ranges(name, decided):
                    to[key] = union(to.get(key, []), ranges)
        return Decisions(release, reject)

    def clear(self) -> None:
        """Removes the files, after their decisions are in a logged offset."""
        for name in self._directory.names(_SUFFIX):
            self._directory.remove(name)

    def _ranges(self, name: str, decided: str) -> list[tuple[tuple[str, int], list[OffsetRange]]]:
        try:
            members = json.loads(self._directory.read(name))
            if members["version"] != _VERSION:
                raise ValueError(f"version {members['version']}")
            return [
                ((topic, int(partition)), [OffsetRange(first, last) for first, last in ranges])
                for topic, partitions in members[decided].items()
                for partition, ranges in partitions.items()
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            where = self._directory.path_of(name)
            raise PipelineError(f"ackDir: {where} holds no decisions of kafka-share: {error!r}.") from error


def _gathered(decided: Iterable[tuple[str, int, int, Decision]]) -> dict[str, TopicRanges]:
    by_decision: dict[str, dict[tuple[str, int], list[OffsetRange]]] = {"release": {}, "reject": {}}
    for topic, partition, offset, decision in decided:
        if decision not in DECISIONS:
            raise PipelineError(
                f"ack is {decision!r} for {topic}-{partition} offset {offset}; "
                f"it has to be {', '.join(DECISIONS)}, or null."
            )
        if decision != "accept":
            ranges = by_decision[decision].setdefault((topic, partition), [])
            ranges.append(OffsetRange(offset, offset))
    return cast(
        "dict[str, TopicRanges]",
        {name: {key: union(ranges) for key, ranges in of.items()} for name, of in by_decision.items()},
    )


def _to_json(by_partition: TopicRanges) -> dict[str, dict[str, list[list[int]]]]:
    members: dict[str, Any] = {}
    for (topic, partition), ranges in sorted(by_partition.items()):
        members.setdefault(topic, {})[str(partition)] = [[first, last] for first, last in ranges]
    return members
