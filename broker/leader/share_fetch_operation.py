"""A share fetch that waits for records (KIP-932, "Fetching"): the share groups' entry in the purgatory.

It completes when records worth `min_bytes` can be acquired, when a partition has an error to tell, or at
its deadline with whatever there is. What it acquires it acquires in the moment of answering, so a waiting
member holds nothing. The results of acknowledgements that came with the fetch go out with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.broker.config.group_config import GroupConfig
from barnabas.broker.leader.acknowledgements import Acknowledgements, error_result
from barnabas.broker.leader.fetch_source import FetchSource, LateError
from barnabas.broker.leader.share_partition_leader import NOTHING, FetchDemand, Handout, SharePartitionLeader
from barnabas.broker.network.response_budget import ResponseBudget
from barnabas.broker.purgatory import DelayedOperation
from barnabas.broker.share.acquisition import AcquirePlan
from barnabas.broker.share.limits import AcquireMode
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import TopicIdPartition
from barnabas.storage.errors import StorageError


class ShareFetchSpec(NamedTuple):
    """What a request asks for, over all its partitions."""

    group_id: str
    member_id: str
    min_bytes: int
    max_bytes: int
    records_max: int
    batch_size: int
    acquire_mode: AcquireMode


class PartitionFetch(NamedTuple):
    """What a fetch got from one partition."""

    handout: Handout
    error_code: int
    error_message: str | None


NO_RECORDS = PartitionFetch(NOTHING, 0, None)


_Planned = tuple[TopicIdPartition, SharePartitionLeader, AcquirePlan, int]
"""The last is the exclusive end of what may be read."""

Encode = Callable[[dict[TopicIdPartition, PartitionFetch]], object]
"""Makes the response of what each partition gave; partitions without records or error are left out."""


class ShareFetchOperation(DelayedOperation[object]):
    """One request's wait, and the future of its response."""

    def __init__(
        self,
        source: FetchSource,
        spec: ShareFetchSpec,
        partitions: Sequence[TopicIdPartition],
        acknowledgements: Acknowledgements,
        encode: Encode,
        response_budget: ResponseBudget | None = None,
    ) -> None:
        """`partitions` in the order in which they are served; `response_budget` is the broker's, and if it is
        None there are no other connections to share with.
        """
        super().__init__()
        self._source = source
        self._spec = spec
        self._partitions = partitions
        self._acknowledgements = acknowledgements
        self._encode = encode
        self._response_budget = response_budget or ResponseBudget()
        self._config: GroupConfig
        """The group's settings at this look, which may have changed since the last one."""
        self._began_ms = source.now_ms()
        self._errors: dict[TopicIdPartition, PartitionFetch] = {}
        self._late_errors: dict[TopicIdPartition, PartitionFetch] = {}
        self._passed_over = False
        """Whether a partition gave nothing since all that was acquired had been aborted, or was malformed."""

    def try_complete(self) -> bool:
        """See `DelayedOperation`."""
        planned = self._plan()
        available_bytes = self._available_bytes(planned)
        if not self._errors and available_bytes < max(self._spec.min_bytes, 1):
            return False
        fetched = self._acquire(planned)
        if not fetched and not self._errors and not self._passed_over:
            return False
        self._answer(fetched, len(planned))
        return True

    def expire(self, now_ms: int) -> None:
        """See `Expirable`."""
        self._source.counts.expired_fetches.add()
        super().expire(now_ms)

    def on_expire(self) -> None:
        """See `DelayedOperation`."""
        planned = self._plan()
        self._answer(self._acquire(planned), len(planned))

    def _plan(self) -> list[_Planned]:
        """The partitions from which something could be acquired now."""
        planned: list[_Planned] = []
        self._errors, self._late_errors = {}, {}
        spec = self._spec
        config = self._config = self._source.config_of(spec.group_id)
        for partition in self._partitions:
            try:
                leader = self._source.leader_to_fetch(spec.group_id, partition)
            except (ApiError, StorageError) as error:
                is_late = isinstance(error, LateError | StorageError)
                errors = self._late_errors if is_late else self._errors
                errors[partition] = PartitionFetch(NOTHING, *error_result(error))
                continue
            if leader is None:
                continue
            plan = leader.core.plan_acquire(spec.records_max, config.limits, spec.acquire_mode)
            upper_offset = leader.upper_offset(read_committed=config.read_committed)
            if plan.reads and plan.reads[0][0] < upper_offset:
                planned.append((partition, leader, plan, upper_offset))
        return planned

    def _available_bytes(self, planned: Sequence[_Planned]) -> int:
        """Bytes that wait, as far as `min_bytes` asks; notes the partitions that cannot be read."""
        if self._spec.min_bytes <= 1:
            return len(planned)
        total_bytes = 0
        for partition, leader, plan, upper_offset in planned:
            try:
                total_bytes += leader.log.available_bytes(
                    plan.reads[0][0], upper_offset=upper_offset, enough=self._spec.min_bytes
                )
            except (ApiError, StorageError) as error:
                self._errors[partition] = PartitionFetch(NOTHING, *error_result(error))
        return total_bytes

    def _acquire(self, planned: Sequence[_Planned]) -> dict[TopicIdPartition, PartitionFetch]:
        fetched: dict[TopicIdPartition, PartitionFetch] = {}
        spec, limits = self._spec, self._config.limits
        records_left = spec.records_max
        bytes_max = min(spec.max_bytes, self._response_budget.bytes_max())
        if not bytes_max:
            return fetched
        for partition, leader, first_plan, upper_offset in planned:
            if records_left <= 0:
                break
            plan = first_plan
            if records_left != spec.records_max:
                plan = leader.core.plan_acquire(records_left, limits, spec.acquire_mode)
            demand = FetchDemand(
                spec.member_id,
                records_left,
                spec.batch_size,
                max(bytes_max // len(planned), 1),
                spec.acquire_mode,
                limits,
                upper_offset,
                self._config.read_committed,
            )
            try:
                handout = leader.acquire(plan, demand)
            except (ApiError, StorageError) as error:
                self._errors[partition] = PartitionFetch(NOTHING, *error_result(error))
                continue
            self._passed_over |= handout.was_passed_over
            if handout.acquired:
                fetched[partition] = PartitionFetch(handout, 0, None)
                records_left -= handout.record_count
        return fetched

    def _answer(self, fetched: dict[TopicIdPartition, PartitionFetch], acquirable_count: int) -> None:
        if self._partitions:
            self._count(acquirable_count)
        answer = self._late_errors | fetched | self._errors
        self._acknowledgements.when_complete(lambda: self._set(answer))

    def _count(self, acquirable_count: int) -> None:
        counts = self._source.counts
        of_group = counts.by_group.get(self._spec.group_id)
        if of_group is not None:
            of_group.fetched_percent.observe(100 * acquirable_count // len(self._partitions))
            of_group.acquire_ms.observe(self._source.now_ms() - self._began_ms)
        if self._errors or self._late_errors:
            failed = {one.topic_id for one in (*self._errors, *self._late_errors)}
            for of_topic in counts.of_topics(failed):
                of_topic.failed_fetches.add()

    def _set(self, fetched: dict[TopicIdPartition, PartitionFetch]) -> None:
        if not self.done():
            self.set_result(self._encode(fetched))
