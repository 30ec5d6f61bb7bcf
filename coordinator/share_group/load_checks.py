"""Share groups whose assignor is `load`: looks at their backlogs, and moves partitions when these ask for it.

One timer for each such group with members; other groups have none. A look comes once per heartbeat interval,
because members learn of a new target by their next heartbeat, and not more often than
`share.assignment.interval.ms`. The assignor decides whether the backlogs have changed enough: it returns the
present target unless that is out of balance by more than its tolerance. A new target raises the group epoch,
as every target does.

Not stored: after a restart, the first look only notes the ends of the logs.
"""

from barnabas.coordinator.assignor import load
from barnabas.coordinator.assignor.load import Backlogs
from barnabas.coordinator.group.last_assignment import assignment_is_due
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.group.timers import GroupTimers, Timer, TimerKind
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.replay.steps import Write
from barnabas.coordinator.share_group.interfaces import PartitionLoad, PartitionLoads, ShareMembershipConfigs
from barnabas.coordinator.share_group.load_samples import LoadOf, PartitionKey, look, whole_backlogs
from barnabas.coordinator.share_group.record_factory import group_metadata, target_assignment
from barnabas.coordinator.share_group.share_group import ShareGroup
from barnabas.coordinator.share_group.target_assignment import compute_target
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.moment import Moment


class LoadChecks:
    """The looks at all groups of one coordinator."""

    def __init__(
        self,
        catalog: TopicCatalog,
        loads: PartitionLoads,
        configs: ShareMembershipConfigs,
        timers: GroupTimers,
    ) -> None:
        self._catalog = catalog
        self._loads = loads
        self._configs = configs
        self._timers = timers
        self.rebalance_count = 0
        """The number of targets that looks have changed."""

    def watch(self, group: ShareGroup, now_ms: int) -> None:
        """Begin to look at a group with members, if its assignor is `load` and this has not begun."""
        if self._configs.assignor(group.group_id) == load.NAME and _timer(group) not in self._timers:
            self._timers.restart(_timer(group), now_ms + self._interval_ms(group))

    def forget(self, group: ShareGroup) -> None:
        """Look at the group no more."""
        self._timers.cancel(_timer(group))

    def settings_changed(self, group: ShareGroup, now_ms: int) -> None:
        """The group's own settings have changed: if it has begun or ceased to use `load`, look at once."""
        uses_load = self._configs.assignor(group.group_id) == load.NAME
        is_watched = _timer(group) in self._timers
        if group.members and uses_load != is_watched:
            self._timers.restart(_timer(group), now_ms)

    def backlogs(self, group: ShareGroup) -> Backlogs | None:
        """The backlogs for a target that is computed now; None if the group's assignor is `simple`."""
        if self._configs.assignor(group.group_id) != load.NAME:
            return None
        samples = group.soft.load_samples
        if samples is not None and samples.backlogs is not None:
            return samples.backlogs
        return whole_backlogs(self._partitions(group), self._load_of(group))

    def check(self, group: ShareGroup, moment: Moment) -> Steps[None]:
        """Look at the group, and write a new target if it is time for one and the present one is out of
        balance. A group that uses `simple` now gets its target from that, and no further looks.
        """
        soft = group.soft
        uses_load = self._configs.assignor(group.group_id) == load.NAME
        if not group.members:
            soft.load_samples = None
            return
        self._timers.restart(_timer(group), moment.now_ms + self._interval_ms(group))
        if uses_load:
            soft.load_samples = look(soft.load_samples, self._partitions(group), self._load_of(group))
        interval_ms = self._configs.assignment_interval_ms(group.group_id)
        is_due = assignment_is_due(group.assigned_at_ms, interval_ms, moment.now_ms)
        # A target that a change of the group asks for is left to the heartbeats.
        if not is_due or group.assignment_epoch < group.group_epoch:
            return
        if not uses_load:
            soft.load_samples = None
            self.forget(group)
        if soft.load_samples is None or soft.load_samples.backlogs is not None:
            yield from self._assign(group, moment.wall_ms)

    def _assign(self, group: ShareGroup, wall_ms: int) -> Steps[None]:
        target = compute_target(
            group,
            next(iter(group.members.values())),
            group.subscriber_counts,
            group.state_partitions.initialised,
            self._catalog,
            self.backlogs(group),
        )
        if any(assignment != group.target.get(member_id) for member_id, assignment in target.items()):
            epoch = group.group_epoch + 1
            epoch_record = group_metadata(group, epoch, group.metadata_hash)
            yield Write([epoch_record, *target_assignment(group, target, epoch, wall_ms)])
            self.rebalance_count += 1

    def _interval_ms(self, group: ShareGroup) -> int:
        group_id = group.group_id
        heartbeat_interval_ms = self._configs.heartbeat_interval_ms(group_id)
        return max(heartbeat_interval_ms, self._configs.assignment_interval_ms(group_id))

    def _partitions(self, group: ShareGroup) -> list[PartitionKey]:
        """The group's partitions with share state in topics that a member reads."""
        return [
            (topic_id, index)
            for topic_id, topic in group.state_partitions.initialised.items()
            if topic.topic_name in group.subscriber_counts
            for index in topic.partitions
        ]

    def _load_of(self, group: ShareGroup) -> LoadOf:
        def load_of(key: PartitionKey, before_offset: int | None) -> PartitionLoad | None:
            return self._loads.load_of(SharePartitionKey(group.group_id, *key), before_offset)

        return load_of


def _timer(group: ShareGroup) -> Timer:
    return Timer(TimerKind.LOAD_CHECK, group.group_id)
