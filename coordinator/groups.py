"""All groups of this broker, of every type: share groups, and classic ones with what consumers commit.

A group id belongs to one type at a time. What concerns all of them is here: loading, timers, listing,
deleting; what members and administrators ask of one type goes to `share` or `classic`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import cast
from uuid import UUID

from barnabas.coordinator.classic.coordinator import ClassicCoordinator
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.group.group_coordinator import GroupCoordinator
from barnabas.coordinator.group.interfaces import ShareStateInitialiser
from barnabas.coordinator.group.record_factory import GroupRecord
from barnabas.coordinator.group.settings import GroupConfigs, GroupSettings
from barnabas.coordinator.group_runtimes import AnyGroupRecord, GroupRuntimes, decode_record, is_classic
from barnabas.coordinator.reply import CoordinatorReply
from barnabas.coordinator.runtime.interfaces import CoordinatorLog, StoredRecord, TopicCatalog
from barnabas.coordinator.runtime.steps import Steps


class Groups:
    """The groups, and the one way in which their records are written and read."""

    def __init__(
        self,
        *,
        log: CoordinatorLog,
        catalog: TopicCatalog,
        share_state: ShareStateInitialiser,
        configs: GroupConfigs,
        settings: GroupSettings,
        classic_settings: ClassicSettings,
        wall_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
        on_deadline: Callable[[], None],
    ) -> None:
        """`wall_ms` is the time of day, `new_uuid` makes ids for members that have none, `on_deadline` is
        called when `next_deadline_ms` may have moved.
        """
        self._runtimes = GroupRuntimes(
            log, replay=self._replay, max_queued_operations=settings.max_queued_operations
        )
        self.share = GroupCoordinator(
            runtimes=self._runtimes,
            catalog=catalog,
            share_state=share_state,
            configs=configs,
            settings=settings,
            other_group_type=self._classic_type,
        )
        self.classic = ClassicCoordinator(
            runtimes=self._runtimes,
            settings=classic_settings,
            wall_ms=wall_ms,
            new_uuid=new_uuid,
            other_group_type=self._share_type,
            on_deadline=on_deadline,
        )

    # Loading

    def load(self, partition: int, records: Iterable[StoredRecord], *, now_ms: int) -> None:
        """Replay a partition's log, oldest first, and open it for operations; all members' sessions begin
        now.

        Records of types that are not known here are passed over. RecordFormatError if one is malformed.
        """
        runtime = self._runtimes.of_partition(partition)
        assert not runtime.loaded
        for _, key, value in records:
            record = None if key is None else decode_record(key, value)
            if record is not None:
                self._load(record)
        self.share.begin(partition, now_ms)
        self.classic.begin(partition, now_ms)
        runtime.loaded = True

    def unload(self, partition: int) -> None:
        """Forget a partition's groups and their sessions, for its log may hold less than was replayed.

        Until it is loaded again its operations, those under way included, are refused with
        COORDINATOR_LOAD_IN_PROGRESS. An append that was under way must have ended before the log is read.
        """
        self._runtimes.of_partition(partition).unload()
        # Only now: a removal that was refused has begun its member's session anew.
        self.share.forget(partition)
        self.classic.forget(partition)

    # Timers

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None if there is nothing to wait for."""
        deadlines_ms = (self.share.next_deadline_ms(), self.classic.next_deadline_ms())
        return min((one for one in deadlines_ms if one is not None), default=None)

    def expire(self, now_ms: int) -> None:
        """Do what is due in all groups."""
        self.share.expire(now_ms)
        self.classic.expire(now_ms)

    # Administration

    def list_groups(
        self, states_filter: Collection[str] = (), types_filter: Collection[str] = ()
    ) -> list[ListedGroup]:
        """ListGroups: those in one of the states and of one of the types; an empty filter lets all pass."""
        states = {state.strip().lower() for state in states_filter}
        types = {group_type.strip().lower() for group_type in types_filter}
        return [
            group
            for group in (*self.share.list_groups(), *self.classic.list_groups())
            if (not states or group.state.lower() in states)
            and (not types or group.group_type.lower() in types)
        ]

    def delete_group(self, group_id: str) -> CoordinatorReply[None]:
        """DeleteGroups of one group, with all that belongs to it: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""

        def operation() -> Steps[AnyGroupRecord, None]:
            # Only now: a group of either type may be being made, or deleted.
            is_classic_group = self._classic_type(group_id) is not None
            yield from (self.classic if is_classic_group else self.share).deleting(group_id)

        return self._runtimes.of_group(group_id).submit(operation)

    def on_topics_deleted(self, topics: Mapping[str, UUID]) -> None:
        """Topics (id by name) are gone, from the catalog too: groups forget them."""
        self.share.on_topics_deleted(topics.values())
        self.classic.on_topics_deleted(topics)

    def _replay(self, record: AnyGroupRecord) -> None:
        if is_classic(record):
            self.classic.note_written(record)
        else:
            self.share.replay(cast("GroupRecord", record))

    def _load(self, record: AnyGroupRecord) -> None:
        if is_classic(record):
            self.classic.load(record)
        else:
            self.share.replay(cast("GroupRecord", record))

    def _share_type(self, group_id: str) -> str | None:
        return self.share.type_of(group_id)

    def _classic_type(self, group_id: str) -> str | None:
        return self.classic.type_of(group_id)
