"""The disk has changed a record of a coordinator. The broker starts without that partition, and serves the
rest of it after the record is dropped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import iterate_headers
from tests.conformance.harness import DATA_DIRECTORY, INTERNAL_PARTITIONS, Lab, open_lab, settle
from tests.conformance.share_member import ShareMember

RETRIABLE = (ErrorCode.coordinator_not_available, ErrorCode.coordinator_load_in_progress)


def member(lab: Lab, group_id: str) -> ShareMember:
    return ShareMember(lab.client(), group_id=group_id, member_id=f"member-of-{group_id}")


def flip_a_byte(lab: Lab, group_id: str) -> str:
    """Changes a byte in the first record of the group's partition; returns the file."""
    partition = partition_of_key(group_id, INTERNAL_PARTITIONS)
    path = f"{DATA_DIRECTORY}/{OFFSETS_TOPIC}-{partition}/{0:020d}.log"
    lab.filesystem.files[path][70] ^= 1
    return path


async def test_other_groups_are_served_and_one_line_has_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with open_lab() as lab:
        await lab.create_topic("t", 1)
        for group_id in ("damaged", "good"):
            await member(lab, group_id).join("t")
        await lab.broker.close()
        path = flip_a_byte(lab, "damaged")
        capsys.readouterr()
        await lab.start()
        (line,) = [one for one in capsys.readouterr().out.splitlines() if "partition not loaded" in one]
        directory = path.rpartition("/")[0]
        for told in ("Offset 0 cannot be read", path, f"barnabas log drop-damaged {directory}"):
            assert told in line
        refused = await member(lab, "damaged").heartbeat(0, ["t"])
        assert refused.error_code in RETRIABLE
        assert (await member(lab, "good").heartbeat(0, ["t"])).error_code is ErrorCode.none


async def test_a_repaired_record_is_served_without_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.broker.internal_topics.coordinator_topic._DAMAGED_PAUSE_SECONDS", 0)
    async with open_lab() as lab:
        await lab.create_topic("t", 1)
        await member(lab, "damaged").join("t")
        await lab.broker.close()
        flip_a_byte(lab, "damaged")
        await lab.start()
        assert (await member(lab, "damaged").heartbeat(0, ["t"])).error_code in RETRIABLE
        flip_a_byte(lab, "damaged")
        await settle()
        assert (await member(lab, "damaged").heartbeat(0, ["t"])).error_code is ErrorCode.none


async def test_a_record_dropped_at_the_end_of_the_log_does_not_prevent_serving() -> None:
    async with open_lab() as lab:
        await lab.create_topic("t", 1)
        await member(lab, "damaged").join("t")
        await lab.broker.close()
        partition = partition_of_key("damaged", INTERNAL_PARTITIONS)
        path = f"{DATA_DIRECTORY}/{OFFSETS_TOPIC}-{partition}/{0:020d}.log"
        *_, (last_position, last) = iterate_headers(bytes(lab.filesystem.files[path]))
        # As if the last batch were the end of a closed segment, and one more in an active segment were lost.
        del lab.filesystem.files[path][last_position:]
        lab.filesystem.files[path.replace(f"{0:020d}", f"{last.last_offset:020d}")] = bytearray()
        await lab.start()
        assert (await member(lab, "damaged").heartbeat(0, ["t"])).error_code is ErrorCode.none


# Without the record.

GROUP = "damaged"


async def join_share_group(lab: Lab, member_id: str) -> ErrorCode:
    joining = ShareMember(lab.client(), group_id=GROUP, member_id=member_id)
    return ErrorCode((await joining.heartbeat(0, ["t"])).error_code)


async def join_consumer_group(lab: Lab, member_id: str) -> ErrorCode:
    answer = await lab.client().ask(
        "consumer_group_heartbeat",
        group_id=GROUP,
        member_id=member_id,
        member_epoch=0,
        subscribed_topic_names=["t"],
        topic_partitions=[],
        rebalance_timeout=1000,
    )
    return ErrorCode(answer.error_code)


async def leave_consumer_group(lab: Lab, member_id: str) -> None:
    await lab.client().ask("consumer_group_heartbeat", group_id=GROUP, member_id=member_id, member_epoch=-1)


async def leave_share_group(lab: Lab, member_id: str) -> None:
    await ShareMember(lab.client(), group_id=GROUP, member_id=member_id).heartbeat(-1, ["t"])


@pytest.mark.parametrize(
    ("join", "leave"),
    [(join_share_group, leave_share_group), (join_consumer_group, leave_consumer_group)],
    ids=["share", "consumer"],
)
async def test_the_group_is_served_after_any_record_is_dropped(
    join: Callable[[Lab, str], Awaitable[ErrorCode]],
    leave: Callable[[Lab, str], Awaitable[None]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    lab = Lab({})
    await lab.start()
    await lab.create_topic("t", 2)
    for member_id in ("one", "two"):
        assert await join(lab, member_id) is ErrorCode.none
    await leave(lab, "two")
    await lab.broker.close()
    path = f"{DATA_DIRECTORY}/{OFFSETS_TOPIC}-{partition_of_key(GROUP, INTERNAL_PARTITIONS)}/{0:020d}.log"
    written = lab.filesystem
    batches = list(iterate_headers(bytes(written.files[path])))
    assert len(batches) > 2
    for position, header in batches:
        lab.filesystem = written.copy()
        del lab.filesystem.files[path][position : position + header.size_bytes]
        for suffix in (".index", ".timeindex", ".shareindex"):
            del lab.filesystem.files[path.replace(".log", suffix)]
        await lab.start()
        assert await join(lab, "three") is ErrorCode.none, header.base_offset
        await lab.broker.close()
    assert "not loaded" not in capsys.readouterr().out
