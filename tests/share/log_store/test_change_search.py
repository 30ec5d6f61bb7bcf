"""The search for the last changes of records, backwards through control records."""

from __future__ import annotations

import pytest

from barnabas.protocol.delivery_state import Cause
from barnabas.share.log_store import change_search
from barnabas.share.log_store.change_search import find_last_changes
from barnabas.storage.format.share_index import group_hash
from tests.share.leader.leading import ACCEPT, RELEASE, Leading, acknowledge, leading

REJECT = 3


async def held(
    record_count: int = 6, *, deltas_per_checkpoint: int = 500, group_id: str = "group"
) -> Leading:
    """A member of the group holds these records, each of a batch of its own."""
    stage = await leading(deltas_per_checkpoint=deltas_per_checkpoint)
    stage.produce(*[1] * record_count)
    stage.fetch(stage.lead(group_id))
    return stage


def settle(stage: Leading, offset: int, ack_type: int, group_id: str = "group") -> None:
    assert acknowledge(stage.lead(group_id), offset, offset, ack_type).done


def found(
    stage: Leading, *wanted: tuple[int, int], group_id: str = "group", incarnation: int = 1
) -> list[tuple[int, int, Cause]]:
    changes = find_last_changes(stage.log, group_id, incarnation, wanted)
    return [(one.first_offset, one.last_offset, one.cause) for one in changes]


async def test_the_newest_change_of_each_wanted_offset_is_found() -> None:
    stage = await held()
    settle(stage, 1, RELEASE)
    settle(stage, 2, ACCEPT)
    stage.fetch(stage.lead())
    settle(stage, 1, REJECT)
    settle(stage, 4, ACCEPT)
    assert found(stage, (0, 5)) == [(1, 1, Cause.REJECT), (2, 2, Cause.ACCEPT), (4, 4, Cause.ACCEPT)]
    assert found(stage, (2, 3), (5, 5)) == [(2, 2, Cause.ACCEPT)]
    assert found(stage) == []


async def test_a_change_of_a_range_is_cut_to_the_wanted_offsets() -> None:
    stage = await held()
    assert acknowledge(stage.lead(), 1, 5, RELEASE).done
    assert found(stage, (0, 2), (4, 9)) == [(1, 2, Cause.RELEASE), (4, 5, Cause.RELEASE)]


async def test_the_time_and_the_member_come_from_the_control_record() -> None:
    stage = await held()
    stage.clock.now_ms += 70
    settle(stage, 1, ACCEPT)
    (change,) = find_last_changes(stage.log, "group", 1, [(1, 1)])
    assert (change.member_id, change.timestamp_ms) == ("member", stage.clock.wall_ms())
    assert change.delivery_count == 1


async def test_records_of_other_groups_and_of_an_earlier_group_of_the_name_do_not_count() -> None:
    stage = await held()
    stage.fetch(stage.lead("other"))
    settle(stage, 1, ACCEPT)
    settle(stage, 2, REJECT, "other")
    assert found(stage, (0, 5)) == [(1, 1, Cause.ACCEPT)]
    assert found(stage, (0, 5), group_id="other") == [(2, 2, Cause.REJECT)]
    assert found(stage, (0, 5), incarnation=2) == []


async def test_a_change_that_was_recorded_in_a_checkpoint_is_not_found() -> None:
    stage = await held(deltas_per_checkpoint=1)
    settle(stage, 1, ACCEPT)
    settle(stage, 2, ACCEPT)
    settle(stage, 3, ACCEPT)
    assert found(stage, (0, 5)) == [(1, 1, Cause.ACCEPT), (3, 3, Cause.ACCEPT)]


@pytest.mark.parametrize("limit", ["SEARCHED_RECORDS_MAX", "SEARCHED_BYTES_MAX"])
async def test_the_search_ends_at_its_limits(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = await held()
    for offset in (1, 2, 3):
        settle(stage, offset, ACCEPT)
    newest = next(stage.log.share_records.newest(group_hash("group")))
    bound = 2 if limit == "SEARCHED_RECORDS_MAX" else newest.length_bytes + 1
    monkeypatch.setattr(change_search, limit, bound)
    assert found(stage, (0, 5)) == [(2, 2, Cause.ACCEPT), (3, 3, Cause.ACCEPT)]


async def test_the_search_ends_before_the_first_wanted_record() -> None:
    stage = await held()
    settle(stage, 1, ACCEPT)
    stage.produce(1)
    last = stage.log.high_watermark - 1
    stage.fetch(stage.lead())
    settle(stage, last, REJECT)
    stage.filesystem.read_count = 0
    assert found(stage, (last, last + 5)) == [(last, last, Cause.REJECT)]
    assert stage.filesystem.read_count <= 2


async def test_changes_before_a_damaged_record_are_unknown() -> None:
    stage = await held()
    settle(stage, 1, ACCEPT)
    settle(stage, 2, ACCEPT)
    entries = list(stage.log.share_records.newest(group_hash("group")))
    settle(stage, 3, ACCEPT)
    log_file = next(name for name in stage.filesystem.files if name.endswith(".log"))
    stage.filesystem.files[log_file][entries[0].position + 80] ^= 1
    assert found(stage, (0, 5)) == [(3, 3, Cause.ACCEPT)]
