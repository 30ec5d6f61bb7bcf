"""The operations of members on their groups, step by step: heartbeat, leave, end of a session.

`heartbeat.py` decides on the records. This module creates the share state before they are written, and
updates the soft state (sessions, retries) after they are in the log.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.group.timers import GroupTimers, Timer, TimerKind
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.replay.steps import Settle, Write
from barnabas.coordinator.share_group.heartbeat import (
    JOIN_EPOCH,
    HeartbeatDecider,
    HeartbeatRequest,
    HeartbeatResult,
    check_member,
    decide_removal,
    unknown_member,
)
from barnabas.coordinator.share_group.initialisation import NewPartition, plan_initialisation
from barnabas.coordinator.share_group.interfaces import (
    START_UNDECIDED,
    PartitionLoads,
    ShareMembershipConfigs,
    ShareStateInitialiser,
)
from barnabas.coordinator.share_group.load_checks import LoadChecks
from barnabas.coordinator.share_group.registry import ShareGroupRegistry
from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.coordinator.share_group.share_group import LEAVE_EPOCH, ShareGroup
from barnabas.protocol.tuples import maker
from barnabas.runtime.completion import AllDone, Completion
from barnabas.runtime.moment import Moment

_new_timer = maker(Timer)


class Membership:
    """Members' operations over the groups of one registry."""

    def __init__(
        self,
        registry: ShareGroupRegistry,
        catalog: TopicCatalog,
        share_state: ShareStateInitialiser,
        loads: PartitionLoads,
        configs: ShareMembershipConfigs,
        settings: ShareGroupSettings,
    ) -> None:
        self._registry = registry
        self._catalog = catalog
        self._share_state = share_state
        self._configs = configs
        self._settings = settings
        self.timers = GroupTimers()
        """The members' sessions, and the looks at loads."""
        self.load_checks = LoadChecks(catalog, loads, configs, self.timers)
        self.rebalance_count = 0
        """The number of heartbeats that have raised their group's epoch."""

    def restart_session(self, group_id: str, member_id: str, now_ms: int) -> bool:
        """Give the member a whole session from now (monotonic) on; returns whether the next deadline of all
        members may be earlier now.
        """
        timer = _new_timer((TimerKind.SESSION, group_id, member_id))
        return self.timers.restart(timer, now_ms + self._configs.session_timeout_ms(group_id))

    def end_session(self, group_id: str, member_id: str) -> None:
        """Expect no heartbeat of the member any more."""
        self.timers.cancel(Timer(TimerKind.SESSION, group_id, member_id))

    def heartbeat(self, request: HeartbeatRequest, moment: Moment) -> Steps[HeartbeatResult]:
        """A valid heartbeat of a member that joins or stays."""
        now_ms = moment.now_ms
        if request.member_epoch == JOIN_EPOCH:
            group = self._registry.existing_or_new(request.group_id, moment.wall_ms)
        else:
            group = self._registry.existing(request.group_id)
        member = check_member(group, request, self._settings.max_size)
        decider = HeartbeatDecider(
            group,
            member,
            request,
            self._catalog,
            backlogs=partial(self.load_checks.backlogs, group),
            assignment_interval_ms=self._configs.assignment_interval_ms(group.group_id),
            heartbeat_interval_ms=self._configs.heartbeat_interval_ms(group.group_id),
            moment=moment,
        )
        planned, held_back = plan_initialisation(group, decider.subscriber_counts, self._catalog, now_ms)
        decision = decider.decide(planned, held_back)
        epoch_before = group.group_epoch
        failed: set[NewPartition] = set()
        if planned:
            failed = yield from self._initialise(group, planned, decision.group_epoch)
        if failed:
            decision = decider.decide([new for new in planned if new not in failed], [*failed, *held_back])
        if decision.records:
            yield Write(decision.records)
            self.rebalance_count += decision.group_epoch != epoch_before
        elif not planned:
            self._note_nothing_to_do(group, now_ms)
        self._note_failures(request.group_id, failed, now_ms)
        self.load_checks.watch(self._registry.existing(request.group_id), now_ms)
        self.restart_session(request.group_id, request.member_id, now_ms)
        return decision.result

    def leave(self, group_id: str, member_id: str) -> Steps[HeartbeatResult]:
        """A heartbeat with the epoch -1. It does not release the member's records: the end of the share
        session does.
        """
        group = self._registry.existing(group_id)
        if member_id not in group.members:
            raise unknown_member(group_id, member_id)
        yield Write(decide_removal(group, member_id, self._catalog))
        self.end_session(group_id, member_id)
        return HeartbeatResult(member_id, LEAVE_EPOCH, 0, None)

    def timed_out(self, group: ShareGroup, member_id: str) -> Steps[None]:
        """Remove a member whose session has ended."""
        if member_id in group.members:
            yield Write(decide_removal(group, member_id, self._catalog))

    def _initialise(
        self, group: ShareGroup, planned: Sequence[NewPartition], state_epoch: int
    ) -> Steps[set[NewPartition]]:
        """Create the share state of the partitions; returns those for which it failed."""
        failed = yield from self._finish_deletion(group, planned)
        cleared = [new for new in planned if new not in failed]
        completions = [
            self._share_state.initialise(
                group.group_id,
                group.incarnation,
                new.topic_id,
                new.partition,
                START_UNDECIDED,
                state_epoch,
            )
            for new in cleared
        ]
        yield Settle(AllDone(completions))
        return failed | _failed(cleared, completions)

    def _finish_deletion(
        self, group: ShareGroup, planned: Sequence[NewPartition]
    ) -> Steps[set[NewPartition]]:
        """Delete the state that a failed or interrupted deletion may have left in the partitions; returns
        those for which that failed again.

        State that begins undecided is not written, so old state would stay in force.
        """
        unsure = [new for new in planned if new.topic_id in group.state_partitions.deleting]
        completions = [
            self._share_state.delete(group.group_id, group.incarnation, new.topic_id, new.partition)
            for new in unsure
        ]
        yield Settle(AllDone(completions))
        return _failed(unsure, completions)

    def _note_failures(self, group_id: str, failed: Iterable[NewPartition], now_ms: int) -> None:
        # A new group is in the registry only now.
        group = self._registry.existing(group_id)
        retry_at_ms = now_ms + self._settings.initialize_retry_interval_ms
        retries = group.soft.retry_initialisation_at_ms
        retries.update({(new.topic_id, new.partition): retry_at_ms for new in failed})

    def _note_nothing_to_do(self, group: ShareGroup, now_ms: int) -> None:
        # Only here no topic can have changed since the check, because the operation has not waited.
        soft = group.soft
        for key in [key for key, at_ms in soft.retry_initialisation_at_ms.items() if at_ms <= now_ms]:
            del soft.retry_initialisation_at_ms[key]
        soft.metadata_refresh_due = False
        soft.settled = not soft.retry_initialisation_at_ms and group.assignment_epoch == group.group_epoch


def _failed(partitions: Iterable[NewPartition], completions: Iterable[Completion[None]]) -> set[NewPartition]:
    """The partitions whose completions have failed; all have ended."""
    return {
        new for new, completion in zip(partitions, completions, strict=True) if completion.error is not None
    }
