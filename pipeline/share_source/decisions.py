"""Decisions about single records of a batch, on their way from `foreachBatch` to the source's reader.

The function of `foreachBatch` runs in the driver, and so does the reader, in another process: what the one
decides, the other finds in files under the option `ackDir`, any directory or URI that PyArrow can write to
from the driver's machine. There is one file per batch id, written anew when a batch is replayed. Records that
no file speaks of are accepted. A directory belongs to one query, as its checkpoint does.

When the reader plans a batch, the offset that holds whatever came of earlier files is in Spark's log: they
are removed then, so that the files there are when a batch is done are that batch's.
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
    """What is not to be accepted. A record in both is rejected."""

    release: TopicRanges
    reject: TopicRanges


NONE: Final = Decisions({}, {})


class DecisionFiles:
    """The files under one `ackDir`."""

    def __init__(self, uri: str) -> None:
        """Raises `PipelineError` if there can be no such directory."""
        self._directory = Directory("ackDir", uri)

    def write(self, batch_id: int, decided: Iterable[tuple[str, int, int, Decision]]) -> None:
        """Note what was decided in a batch: topic, partition, offset, decision; the accepted may be left out.

        Replaces what was noted for the batch before.
        """
        members = {
            "version": _VERSION,
            "batch": batch_id,
            **{name: _to_json(ranges) for name, ranges in _gathered(decided).items()},
        }
        self._directory.write(f"{batch_id:012d}{_SUFFIX}", json.dumps(members).encode())

    def read(self) -> Decisions:
        """Everything there is. Raises `PipelineError` for a file that is none of these, naming it."""
        release: dict[tuple[str, int], list[OffsetRange]] = {}
        reject: dict[tuple[str, int], list[OffsetRange]] = {}
        for name in self._directory.names(_SUFFIX):
            for decided, to in (("release", release), ("reject", reject)):
                for key, ranges in self._ranges(name, decided):
                    to[key] = union(to.get(key, []), ranges)
        return Decisions(release, reject)

    def clear(self) -> None:
        """Remove them: they are in an offset that is logged."""
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
