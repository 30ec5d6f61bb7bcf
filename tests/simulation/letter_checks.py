"""The promises of dead letters (docs/decisions/0024).

Each letter has a reason, and is about a record that was sent. At the end each record that was given up has
one, and no record has two. A letter names the topic of its record, not the topic's id, so a letter counts for
all topics that had the name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.identity import SharePartitionKey
from tests.conformance.dead_lettering import ARCHIVED, EXPIRED, REJECTED, TOO_OFTEN, Letter
from tests.conformance.share_member import REJECT
from tests.simulation.decisions import Decisions, Ended
from tests.simulation.model import Violation
from tests.simulation.world import World

_CAUSES = {
    REJECTED: Cause.REJECT,
    TOO_OFTEN: Cause.DELIVERY_LIMIT,
    ARCHIVED: Cause.ADMIN,
    EXPIRED: Cause.EXPIRED,
}
_CAUSES_OF_LETTERS = (Cause.REJECT, Cause.DELIVERY_LIMIT, Cause.EXPIRED, Cause.DEAD_LETTER)

_CAUSES_AT_LAST = (Cause.DEAD_LETTER,)
"""Of a group that did without letters at last: a record that ended for another cause may have none."""


class _Original(NamedTuple):
    """The record that a letter is about, and the group that gave it up."""

    group_id: str
    topic: str
    partition: int
    offset: int


class LetterChecks:
    """The checks of one run."""

    def __init__(self, world: World, decisions: Decisions) -> None:
        self._world = world
        self._decisions = decisions
        self._counts: Counter[_Original] = Counter()
        """The letters at the end of the run."""

    def check_letter(self, letter: Letter) -> None:
        """A reader got this letter."""
        original = _original_of(letter)
        keys = list(self._keys(original))
        if not any(self._has_reason(key, letter) for key in keys):
            raise Violation(f"{original}: has a dead letter without a reason: {letter}")
        if not self._world.scenario.letters.copies:
            if letter.record.key is not None or letter.record.value is not None:
                raise Violation(f"{original}: its dead letter copies the record: {letter}")
        elif not any(self._is_copy(key, letter) for key in keys):
            raise Violation(f"{original}: its dead letter is no copy of it: {letter}")

    def _has_reason(self, key: SharePartitionKey, letter: Letter) -> bool:
        """Whether a leader has decided so, and a client asked for it or the limit allows it."""
        cause = _CAUSES[letter.message]
        ended = self._decisions.ended.get(key, {}).get(letter.offset, ())
        if (cause, letter.delivery_count) not in [(one.cause, one.delivery_count) for one in ended]:
            return False
        share = self._world.model.share(key.group_id, key.topic_id_partition)
        if cause is Cause.REJECT:
            pending = self._world.pending(key.group_id, key.topic_id_partition)
            return REJECT in share.acknowledged.get(letter.offset, ()) or pending.explains(
                letter.offset, REJECT
            )
        if cause is Cause.ADMIN:
            return letter.offset in share.administered
        if cause is Cause.EXPIRED:
            return key.group_id in self._world.scenario.timing.group_ids
        limit = self._world.model.group(key.group_id).delivery_count_max
        return letter.delivery_count >= min(limit.values_since(0))

    def _is_copy(self, key: SharePartitionKey, letter: Letter) -> bool:
        """After a loss of power the offset may belong to another record than before."""
        value = letter.record.value
        if value is None:
            return self._may_be_unreadable(key, letter.offset)
        model = self._world.model.partition(key.topic_id_partition)
        if value not in model.sent or letter.record.key != self._world.keys.key_of(value):
            return False
        offset = model.offset_by_value.get(value, letter.offset)
        return offset == letter.offset or model.generation > 0 or value in model.repeatable

    def _may_be_unreadable(self, key: SharePartitionKey, offset: int) -> bool:
        """Whether the record could not be read when its letter was written, or is none: members of these runs
        also reject the markers of transactions that lie between records.
        """
        is_gone = offset < self._decisions.gone_below.get(key, 0)
        model = self._world.model.partition(key.topic_id_partition)
        is_record = offset in model.offset_by_value.values()
        may_fail = "read-errors" in self._world.scenario.fault_names
        return is_gone or model.is_deleted or not is_record or may_fail or self._world.keys.compacts

    # At the end.

    def count(self, letters: Iterable[Letter]) -> None:
        """These are all letters of the run, and no record has too many."""
        self._counts = Counter(_original_of(one) for one in letters)
        for original, count in self._counts.items():
            count_max = sum(self._count_max(key, original.offset) for key in self._keys(original))
            if count > count_max:
                raise Violation(f"{original}: has {count} dead letters, and may have {count_max}")

    def _count_max(self, key: SharePartitionKey, offset: int) -> int:
        """One, except after a reset, which begins anew, and after each loss of power that may take back the
        decision or the place of the letter.
        """
        scenario = self._world.scenario
        losses = 0 if scenario.survives_power_loss else self._world.machine.power_loss_count
        due = self._decisions.letters_due.get(key, {}).get(offset, 0)
        share = self._world.model.share(key.group_id, key.topic_id_partition)
        return losses + (due if share.was_reset else min(due, 1))

    def check_none_given_up(self) -> None:
        """No group with letters has given one up, because their records wait."""
        for key, ended in self._decisions.ended.items():
            if key.group_id in self._world.scenario.letters.group_ids:
                for offset, reasons in ended.items():
                    name = self._decisions.topic_names[key.topic_id]
                    _check_kept(_Original(key.group_id, name, key.partition, offset), reasons)

    def check_rejected(self) -> None:
        """Each confirmed REJECT that is still in force has a letter."""
        for group_id in self._world.scenario.letters.group_ids:
            for topic in self._world.topics.values():
                for partition in topic.partitions:
                    share = self._world.model.share(group_id, partition)
                    for offset, fact in share.final.items():
                        if fact.what == REJECT:
                            self.check_given_up(SharePartitionKey(group_id, *partition), offset)

    def check_given_up(self, key: SharePartitionKey, offset: int) -> None:
        """The record has ended. It has a letter if its group writes some, and the leader's last decision was
        to give it up. The last one counts, because a decision may fail to be recorded, and because a late
        acknowledgement of a record below the start offset is confirmed without effect. If it may be lost, an
        earlier one may be in force, and a letter is due if each of them was to give the record up.

        None is due for a record that left the log before its letter was written, and none if the group gives
        up letters that cannot be written.
        """
        settings = self._world.scenario.letters
        ended = self._decisions.ended.get(key, {}).get(offset)
        if key.group_id not in settings.group_ids or not ended:
            return
        original = _Original(key.group_id, self._decisions.topic_names[key.topic_id], key.partition, offset)
        if settings.holds and not settings.are_given_up:
            _check_kept(original, ended)
        causes = _CAUSES_AT_LAST if settings.are_given_up else _CAUSES_OF_LETTERS
        last = self._decisions.last_ended(key, offset)
        is_due = all(one.is_archiving or one.cause in causes for one in last)
        is_gone = offset in self._decisions.gone_unfinished.get(key, ())
        if is_due and not is_gone and not self._counts[original]:
            raise Violation(f"{original}: has no dead letter, although it was given up: {ended}")

    def _keys(self, original: _Original) -> Iterator[SharePartitionKey]:
        for topic_id, name in self._decisions.topic_names.items():
            if name == original.topic and original.group_id in self._world.scenario.letters.group_ids:
                yield SharePartitionKey(original.group_id, topic_id, original.partition)


def _check_kept(original: _Original, ended: Iterable[Ended]) -> None:
    if any(one.cause is Cause.LETTER_FAILED for one in ended):
        raise Violation(f"{original}: its dead letter was given up")


def _original_of(letter: Letter) -> _Original:
    return _Original(letter.group, letter.topic, letter.source_partition, letter.offset)
