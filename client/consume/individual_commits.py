"""The application's calls for individual commits (`allow_individual_commit`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Generic

from barnabas.client.consume.assignment import Assignment
from barnabas.client.consume.consumer_options import ConsumerSettings
from barnabas.client.consume.individual_progress import UNCOMMITTED_RANGES_MAX, IndividualProgress
from barnabas.client.consume.ownership import Ownership
from barnabas.client.consume.range_commits import RangeCommits
from barnabas.client.errors import MisuseError
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.committed_ranges import OffsetRange

GivenRanges = Mapping[TopicPartition, Sequence[tuple[int, int]]]
"""By partition, the first and last offset of each range, both inclusive."""


class IndividualCommits(Generic[KeyT, ValueT]):
    """Marks records as processed, and commits them."""

    def __init__(
        self,
        settings: ConsumerSettings,
        assignment: Assignment[KeyT, ValueT],
        range_commits: RangeCommits[KeyT, ValueT],
    ) -> None:
        self._settings = settings
        self._assignment = assignment
        self._range_commits = range_commits

    def new_progress(self, ownership: Ownership) -> IndividualProgress | None:
        """For a partition that was assigned; None if offsets are not committed individually."""
        if not self._settings.allow_individual_commit:
            return None
        return IndividualProgress(ownership.hashes, self._range_commits.note_processed)

    async def commit(self) -> None:
        """Commit all records that were delivered, except those that the application still holds."""
        self._assignment.settle()
        await self._range_commits.commit()

    async def commit_ranges(self, given: GivenRanges) -> None:
        """Commit the records of these ranges. Raises `MisuseError` for a partition that is not assigned."""
        for name, ranges in given.items():
            partition = self._assignment.named(name)
            individual = partition.individual
            assert individual is not None, "the option holds for all partitions"
            if partition.ownership.is_share:
                individual.process(ranges)
            else:
                individual.process_all(ranges)
        await self._range_commits.commit()

    def take_ranges(
        self, names: Collection[TopicPartition] | None
    ) -> dict[TopicPartition, list[OffsetRange]]:
        """The processed records, with those that were delivered; from now on they count as committed."""
        self._check()
        self._assignment.settle()
        taken: dict[TopicPartition, list[OffsetRange]] = {}
        for partition in self._assignment.select(names):
            if partition.individual is not None and (ranges := partition.individual.take_processed()):
                partition.individual.note_committed_ranges(ranges)
                taken[partition.name] = ranges
        return taken

    def check_delivered(self) -> None:
        """Raises `MisuseError` if the application polls and never commits."""
        for partition in self._assignment:
            if (
                partition.individual is not None
                and partition.individual.delivered_count > UNCOMMITTED_RANGES_MAX
            ):
                raise MisuseError(
                    f"More than {UNCOMMITTED_RANGES_MAX} ranges of {partition.name.topic}-"
                    f"{partition.name.partition} are delivered and not committed. Commit them before the "
                    "next poll."
                )

    def check(self, given: GivenRanges) -> None:
        """Raises `MisuseError` without the option, and for ranges that are none."""
        self._check()
        for name, ranges in given.items():
            wrong = next((bounds for bounds in ranges if not 0 <= bounds[0] <= bounds[1]), None)
            if wrong is not None:
                raise MisuseError(
                    f"{wrong[0]} to {wrong[1]} of {name[0]}-{name[1]} is no range: give its first and its "
                    "last offset, both inclusive."
                )

    def _check(self) -> None:
        if not self._settings.allow_individual_commit:
            raise MisuseError("Ranges can be committed only with the option allow_individual_commit.")
