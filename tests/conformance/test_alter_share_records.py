"""AlterShareRecords: an administrator releases and archives records of a group, with both stores."""

from __future__ import annotations

from uuid import UUID

import pytest
from structlog.testing import capture_logs

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_inspection import ALTERED_OFFSETS_MAX, DescribedState, RecordAction
from tests.conformance.conftest import Stage, make_stage, with_log_store_only
from tests.conformance.dead_lettering import LETTER_TOPIC, letters, use_dead_letters
from tests.conformance.harness import Lab, open_lab, settle
from tests.conformance.records_of_a_group import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    alter,
    describe,
)
from tests.conformance.share_member import ACCEPT, GROUP, RELEASE, ShareMember, fetched
from tests.conformance.test_order_of_keys import from_base, members, produce, taken

RELEASED, ARCHIVE, DEAD_LETTER = RecordAction


async def holding(stage: Stage, *batch_sizes: int) -> ShareMember:
    """A member that holds all records of these batches."""
    await stage.produce(*batch_sizes)
    member = stage.member()
    while not await member.take():
        await settle()
    return member


async def changed(stage: Stage, action: RecordAction, first_offset: int, last_offset: int) -> int:
    """The number of records that the request has changed."""
    response = await alter(stage.lab, stage.partition, action, first_offset, last_offset)
    assert (response.error_code, response.error_message) == (ErrorCode.none, None)
    count: int = response.record_count
    return count


async def refusal(
    stage: Stage, action: RecordAction | int, first_offset: int, last_offset: int
) -> tuple[ErrorCode, str]:
    """The error, after which nothing has changed."""
    before = await describe(stage.lab, stage.partition)
    response = await alter(stage.lab, stage.partition, action, first_offset, last_offset)
    assert response.record_count == 0
    assert (await describe(stage.lab, stage.partition)).ranges == before.ranges
    return response.error_code, response.error_message


async def test_the_log_of_the_broker_names_the_client_and_the_records_that_it_changes(stage: Stage) -> None:
    await holding(stage, 3)
    with capture_logs() as lines:
        await changed(stage, ARCHIVE, 1, 2)
    (line,) = [one for one in lines if one["event"] == "an administrator changes records of a share group"]
    assert (line["action"], line["group"], line["partition"]) == ("archive", GROUP, "t-0")
    assert (line["first_offset"], line["last_offset"]) == (1, 2)
    assert (line["client_id"], line["client_host"]) == ("admin", "/127.0.0.1")


async def test_a_released_record_is_available_immediately_to_any_member(stage: Stage) -> None:
    holder = await holding(stage, 3)
    assert await changed(stage, RELEASED, 1, 1) == 1
    other = stage.member(2)
    assert await other.take() == [(1, 1, 2)]
    result = await holder.acknowledge([(0, 2, ACCEPT)])
    assert result.errors == [ErrorCode.invalid_record_state]
    await holder.accept(0, 0)
    await holder.accept(2, 2)


async def test_a_release_wakes_a_fetch_that_waits(stage: Stage) -> None:
    await holding(stage, 3)
    waiting = stage.member(2).start_fetch(max_wait=20_000)
    await settle()
    assert not waiting.done
    await changed(stage, RELEASED, 0, 1)
    assert fetched(await stage.lab.answered(waiting)).acquired == [(0, 1, 2)]


async def test_a_released_record_at_the_delivery_limit_is_delivered_once_more(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, delivery_count_limit=2)
    member = await holding(stage, 1)
    await member.acknowledge([(0, 0, RELEASE)])
    assert await member.take() == [(0, 0, 2)]
    await changed(stage, RELEASED, 0, 0)
    assert await member.take() == [(0, 0, 3)]
    await member.acknowledge([(0, 0, RELEASE)])
    assert (await stage.offsets())[1] == 0


async def test_archived_records_are_final_and_the_start_offset_passes_them(stage: Stage) -> None:
    member = await holding(stage, 4)
    await member.acknowledge([(1, 1, RELEASE)])
    assert await changed(stage, ARCHIVE, 0, 2) == 3
    assert await stage.offsets() == (3, 1)
    assert await stage.member(2).take() == []
    assert (await member.acknowledge([(0, 0, ACCEPT)])).errors == [ErrorCode.none], "below the start offset"


async def test_archiving_frees_the_key_of_the_record(stage: Stage) -> None:
    one, other = await members(stage)
    (base,) = await produce(stage, ["a", "a", "a", "b"])
    assert from_base(await taken(one), base) == [0, 3]
    assert (await describe(stage.lab, stage.partition)).ranges[1] == (base + 1, base + 2, AVAILABLE, 0)
    await changed(stage, ARCHIVE, base + 1, base + 1)
    assert await taken(other) == []
    await changed(stage, ARCHIVE, base, base)
    assert from_base(await taken(other), base) == [2]


async def test_records_that_were_never_read_since_the_start_can_be_archived(stage: Stage) -> None:
    holder = await holding(stage, 3, 3, 3)
    await holder.accept(8, 8)
    await stage.lab.restart()
    assert await changed(stage, ARCHIVE, 4, 4) == 1
    member = stage.member()
    while not (got := await member.take()):
        await settle()
    assert got == [(0, 3, 1), (5, 7, 1)]


@pytest.mark.parametrize("failure", ["crash", "restart"])
async def test_changes_survive_the_broker(stage: Stage, failure: str) -> None:
    member = await holding(stage, 4)
    await member.acknowledge([(3, 3, ACCEPT)])
    await changed(stage, ARCHIVE, 1, 1)
    await changed(stage, RELEASED, 2, 2)
    await getattr(stage.lab, failure)()
    page = await describe(stage.lab, stage.partition)
    assert page.ranges[1:] == [(1, 1, ARCHIVED, 1), (2, 2, AVAILABLE, 1), (3, 3, ACKNOWLEDGED, 1)]


@with_log_store_only
async def test_the_control_record_names_the_administrator_as_the_cause_and_the_holder(stage: Stage) -> None:
    member = await holding(stage, 3)
    await member.acknowledge([(2, 2, RELEASE)])
    await changed(stage, RELEASED, 0, 0)
    await changed(stage, ARCHIVE, 1, 2)
    page = await describe(stage.lab, stage.partition)
    assert page.ranges == [(0, 0, AVAILABLE, 1), (1, 1, ARCHIVED, 1), (2, 2, ARCHIVED, 1)]
    assert page.causes == {
        0: (Cause.ADMIN, "member-1"),
        1: (Cause.ADMIN, "member-1"),
        2: (Cause.ADMIN, None),
    }


async def test_a_refused_request_names_the_record_and_changes_none(stage: Stage) -> None:
    member = await holding(stage, 6)
    await member.acknowledge([(0, 0, ACCEPT), (2, 2, ACCEPT), (3, 3, RELEASE)])
    await stage.produce(1)
    state = ErrorCode.invalid_record_state
    new = stage.lab.broker.logs.get(stage.lab.broker.metadata.image.topics_by_id[stage.partition.topic_id], 0)
    assert new is not None
    last = new.high_watermark - 1
    assert await refusal(stage, RELEASED, 0, 1) == (
        state,
        "The record at 0 is final: it lies before the group's start offset 1.",
    )
    assert await refusal(stage, ARCHIVE, 1, 2) == (state, "The record at 2 is final: it is acknowledged.")
    assert await refusal(stage, RELEASED, 3, 4) == (
        state,
        "The record at 3 is available, so no member holds it.",
    )
    code, message = await refusal(stage, ARCHIVE, last, last)
    assert code is state
    assert message == (
        f"The group has not acquired the record at {last} yet, so there is no state to change."
    )


async def test_malformed_requests_are_refused(stage: Stage) -> None:
    await holding(stage, 3)
    invalid = ErrorCode.invalid_request
    assert (await refusal(stage, RELEASED, 1, 0))[0] is invalid
    assert (await refusal(stage, RELEASED, -1, 0))[0] is invalid
    assert await refusal(stage, 4, 0, 0) == (invalid, "There is no action 4.")
    assert await refusal(stage, ARCHIVE, 0, ALTERED_OFFSETS_MAX) == (
        invalid,
        f"A request can change {ALTERED_OFFSETS_MAX} offsets, not {ALTERED_OFFSETS_MAX + 1}.",
    )


async def test_a_group_without_dead_letters_has_nowhere_to_put_them(stage: Stage) -> None:
    await holding(stage, 1)
    code, message = await refusal(stage, DEAD_LETTER, 0, 0)
    assert code is ErrorCode.invalid_config
    assert "no dead letters" in message


async def test_an_administrator_sends_records_to_the_dead_letter_topic(stage: Stage) -> None:
    await use_dead_letters(stage.lab)
    member = await holding(stage, 4)
    await member.acknowledge([(2, 2, RELEASE)])
    assert await changed(stage, DEAD_LETTER, 1, 2) == 2
    found = await letters(stage.lab)
    assert [(one.offset, one.group, one.message) for one in found] == [
        (offset, GROUP, "Offset rejected by an administrator.") for offset in (1, 2)
    ]
    await settle()
    assert (await describe(stage.lab, stage.partition)).ranges[1][2] is ARCHIVED
    assert (await member.acknowledge([(1, 1, ACCEPT)])).errors == [ErrorCode.invalid_record_state]
    await stage.lab.crash()
    assert len(await letters(stage.lab)) == 2
    assert (await describe(stage.lab, stage.partition)).ranges[1][2] is ARCHIVED


async def test_records_whose_letters_cannot_be_written_are_shown_on_their_way(stage: Stage) -> None:
    await use_dead_letters(stage.lab)
    await stage.lab.create_topic(LETTER_TOPIC)  # without the setting that permits letters in it
    await holding(stage, 2)
    assert await changed(stage, DEAD_LETTER, 0, 0) == 1
    await settle()
    assert (await describe(stage.lab, stage.partition)).ranges == [
        (0, 0, DescribedState.ARCHIVING, 1),
        (1, 1, ACQUIRED, 1),
    ]
    for action in (ARCHIVE, DEAD_LETTER):
        assert await refusal(stage, action, 0, 0) == (
            ErrorCode.invalid_record_state,
            "The record at 0 is on its way to a dead letter.",
        )


async def test_unknown_groups_and_topics_are_errors(stage: Stage) -> None:
    await holding(stage, 1)
    response = await alter(stage.lab, stage.partition, RELEASED, 0, 0, group_id="unknown")
    assert response.error_code is ErrorCode.group_id_not_found
    nowhere = TopicIdPartition(UUID(int=4711), 0)
    response = await alter(stage.lab, nowhere, RELEASED, 0, 0)
    assert response.error_code is ErrorCode.unknown_topic_id


class TestSlowAndFailingWrites:
    """With log.flush=always each write waits for a thread."""

    async def test_a_record_whose_acknowledgement_is_being_recorded_cannot_be_changed(self) -> None:
        async with open_lab(log__flush="always") as lab:
            stage = await make_stage(lab)
            member = await holding(stage, 3)
            with lab.stalled_disk():
                member.start_acknowledge([(1, 1, ACCEPT)])
                await settle()
                page = await describe(lab, stage.partition)
                assert [one.wait for one in page.response.ranges] == [0, 1, 0]
                for action in (RELEASED, ARCHIVE):
                    response = await alter(lab, stage.partition, action, 0, 2)
                    assert response.error_code is ErrorCode.invalid_record_state
                    assert response.error_message == (
                        "Another change of the record at 1 is being recorded: try again."
                    )

    async def test_a_release_is_in_force_before_it_is_recorded_and_answered_afterwards(self) -> None:
        async with open_lab(log__flush="always") as lab:
            stage = await make_stage(lab)
            await holding(stage, 2)
            with lab.stalled_disk():
                pending = lab.admin.send(
                    "alter_share_records",
                    group_id=GROUP,
                    topic_id=stage.partition.topic_id,
                    partition_index=0,
                    action=RELEASED,
                    first_offset=0,
                    last_offset=1,
                )
                await settle()
                assert await stage.member(2).take() == [(0, 1, 2)]
                assert not pending.done
            response = await lab.answered(pending)
            assert (response.error_code, response.record_count) == (ErrorCode.none, 2)

    async def test_an_error_of_the_storage_is_the_answer(self, lab: Lab) -> None:
        stage = await make_stage(lab)
        await holding(stage, 2)
        with lab.broken_disk(lab.state_directory(GROUP, stage.partition)):
            response = await alter(lab, stage.partition, ARCHIVE, 0, 0)
        assert response.error_code is not ErrorCode.none
        assert response.record_count == 0


async def test_a_held_record_shows_as_acquired_until_it_is_changed(stage: Stage) -> None:
    await holding(stage, 2)
    assert (await describe(stage.lab, stage.partition)).ranges == [(0, 1, ACQUIRED, 1)]
    await changed(stage, ARCHIVE, 1, 1)
    assert (await describe(stage.lab, stage.partition)).ranges[0] == (0, 0, ACQUIRED, 1)
