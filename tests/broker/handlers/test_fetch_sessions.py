"""Fetch sessions of clients (KIP-227): partitions of a request, contents of a response, and the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Lab, Pending, open_lab, settle
from tests.conformance.share_member import record_offsets

BY_NAME = 12


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as lab:
        yield lab


class Follower:
    """A client that keeps a session over the partitions of one topic."""

    def __init__(self, lab: Lab, topic_id: UUID, name: str = "t", version: int = 18) -> None:
        self.lab = lab
        self.session_id = 0
        self.epoch = 0
        self._topic = {"topic_id": topic_id, "topic": name}
        self.version = version

    def send(
        self,
        offsets: Mapping[int, int],
        *,
        forgotten: Sequence[int] = (),
        of_each: Mapping[str, int] | None = None,
        **fields: Any,
    ) -> Pending:
        """A request that names these partitions with their offsets, and forgets others.

        `of_each` are fields of all that are named, `fields` those of the request.
        """
        partitions = [
            {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **(of_each or {})}
            for index, offset in offsets.items()
        ]
        asked = {
            "session_id": self.session_id,
            "session_epoch": self.epoch,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "topics": [{**self._topic, "partitions": partitions}] if partitions else [],
            "forgotten_topics_data": [{**self._topic, "partitions": forgotten}] if forgotten else [],
        }
        return self.lab.admin.send("fetch", self.version, **{**asked, **fields})

    async def fetch(self, offsets: Mapping[int, int], **fields: Any) -> dict[int, list[int]]:
        """The offsets in each partition of the response; -error for one with an error."""
        return self.told(await self.lab.answered(self.send(offsets, **fields)))

    def told(self, response: Any) -> dict[int, list[int]]:
        assert response.error_code is ErrorCode.none
        self.session_id = response.session_id
        self.epoch += 1
        return {
            one.partition_index: [-one.error_code.value] if one.error_code else record_offsets(one.records)
            for topic in response.responses
            for one in topic.partitions
        }

    async def refused(self, **fields: Any) -> ErrorCode:
        response = await self.lab.answered(self.send({}, **fields))
        assert (response.session_id, response.responses) == (0, ())
        error: ErrorCode = response.error_code
        return error


@pytest.fixture
async def topic_id(lab: Lab) -> UUID:
    return await lab.create_topic("t", 3)


@pytest.mark.parametrize("version", [7, 9, BY_NAME, 13, 18])
async def test_a_response_has_changed_partitions_only(lab: Lab, topic_id: UUID, version: int) -> None:
    client = Follower(lab, topic_id, version=version)
    assert await client.fetch({0: 0, 1: 0}) == {0: [], 1: []}
    assert client.session_id > 0
    assert await client.fetch({}) == {}
    await lab.produce(topic_id, 2, partition=1)
    assert await client.fetch({}) == {1: [0, 1]}
    assert await client.fetch({1: 2}) == {}
    await lab.delete_records("t", 1, partition=1)
    assert await client.fetch({}) == {1: []}, "the log start is news"


@pytest.mark.parametrize(
    ("of_each", "told"),
    [
        ({"current_leader_epoch": 1, "last_fetched_epoch": 1}, {}),
        ({"current_leader_epoch": -1, "last_fetched_epoch": 0}, {0: []}),
        ({"current_leader_epoch": 0}, {0: [-ErrorCode.fenced_leader_epoch.value]}),
        ({"current_leader_epoch": 2}, {0: [-ErrorCode.unknown_leader_epoch.value]}),
        ({"last_fetched_epoch": 2}, {0: [-ErrorCode.offset_out_of_range.value]}),
    ],
)
async def test_an_up_to_date_client_learns_that_its_epoch_is_wrong(
    lab: Lab, topic_id: UUID, of_each: Mapping[str, int], told: dict[int, list[int]]
) -> None:
    await lab.produce(topic_id, 2)
    await lab.restart()
    await lab.produce(topic_id, 1)
    client = Follower(lab, topic_id)
    assert await client.fetch({0: 3, 1: 0}) == {0: [], 1: []}
    assert await client.fetch({0: 3}, of_each=of_each) == told


async def test_a_fetch_of_no_bytes_does_not_wait_for_records(lab: Lab, topic_id: UUID) -> None:
    client = Follower(lab, topic_id)
    await client.fetch({0: 0})
    assert await client.fetch({}, min_bytes=0, max_wait=10_000) == {}


async def test_an_up_to_date_client_learns_that_a_log_is_offline(lab: Lab, topic_id: UUID) -> None:
    await lab.produce(topic_id, 1)
    client = Follower(lab, topic_id)
    await client.fetch({0: 1, 1: 0})
    with lab.broken_disk("t-0"), pytest.raises(AssertionError):
        await lab.produce(topic_id, 1)
    assert await client.fetch({}) == {0: [-ErrorCode.kafka_storage_error.value]}


async def test_partitions_are_added_and_removed(lab: Lab, topic_id: UUID) -> None:
    client = Follower(lab, topic_id)
    await client.fetch({0: 0})
    assert await client.fetch({2: 0}) == {2: []}
    for partition in range(3):
        await lab.produce(topic_id, 1, partition=partition)
    assert await client.fetch({}, forgotten=[0]) == {2: [0]}


async def test_the_last_partition_ends_the_session(lab: Lab, topic_id: UUID) -> None:
    client = Follower(lab, topic_id)
    await client.fetch({0: 0})
    session_id = client.session_id
    assert await client.fetch({}, forgotten=[0]) == {}
    assert client.session_id == 0
    error = await client.refused(session_id=session_id, session_epoch=2)
    assert error is ErrorCode.fetch_session_id_not_found
    assert len(lab.broker.fetch_sessions) == 0


async def test_partitions_with_records_move_behind_the_others(lab: Lab, topic_id: UUID) -> None:
    client = Follower(lab, topic_id)
    await client.fetch({0: 0, 1: 0, 2: 0})
    for partition in (0, 1, 2):
        await lab.produce(topic_id, 1, partition=partition)
    assert await client.fetch({}, max_bytes=1) == {0: [0], 1: [], 2: []}
    assert await client.fetch({}, max_bytes=1) == {1: [0]}
    assert await client.fetch({}, max_bytes=1) == {2: [0]}
    assert await client.fetch({}, max_bytes=1) == {0: [0]}


async def test_an_error_is_repeated_until_it_ends(lab: Lab, topic_id: UUID) -> None:
    client = Follower(lab, topic_id)
    assert await client.fetch({0: 5, 1: 0}) == {0: [-1], 1: []}
    assert await client.fetch({}) == {0: [-1]}
    assert await client.fetch({0: 0}) == {0: []}
    assert await client.fetch({}) == {}


async def test_a_topic_may_appear_and_disappear(lab: Lab, topic_id: UUID) -> None:
    client = Follower(lab, topic_id, "later", version=BY_NAME)
    unknown = -ErrorCode.unknown_topic_or_partition.value
    assert await client.fetch({0: 0}) == {0: [unknown]}
    later_id = await lab.create_topic("later")
    assert await client.fetch({}) == {0: []}
    await lab.produce(later_id, 1)
    assert await client.fetch({}) == {0: [0]}
    await lab.delete_topic("later")
    assert await client.fetch({}) == {0: [unknown]}


async def test_a_recreated_topic_has_another_id(lab: Lab, topic_id: UUID) -> None:
    client = Follower(lab, topic_id)
    await client.fetch({0: 0})
    await lab.delete_topic("t")
    assert await client.fetch({}) == {0: [-ErrorCode.unknown_topic_or_partition.value]}
    await lab.create_topic("t")
    assert await client.fetch({}) == {0: [-ErrorCode.inconsistent_topic_id.value]}
    stranger = Follower(lab, topic_id)
    assert await stranger.fetch({0: 0}) == {0: [-ErrorCode.unknown_topic_id.value]}


class TestErrors:
    async def test_an_unknown_session_is_refused(self, lab: Lab, topic_id: UUID) -> None:
        client = Follower(lab, topic_id)
        assert await client.refused(session_id=9, session_epoch=1) is ErrorCode.fetch_session_id_not_found

    @pytest.mark.parametrize("epoch", [2, 7, -2, 2**31 - 1])
    async def test_an_unexpected_epoch_is_refused_and_the_session_goes_on(
        self, lab: Lab, topic_id: UUID, epoch: int
    ) -> None:
        client = Follower(lab, topic_id)
        await client.fetch({0: 0})
        assert await client.refused(session_epoch=epoch) is ErrorCode.invalid_fetch_session_epoch
        assert await client.fetch({}) == {}, "the session goes on"

    @pytest.mark.parametrize(("version", "other_version"), [(BY_NAME, 13), (13, BY_NAME)])
    async def test_a_session_cannot_change_between_names_and_ids(
        self, lab: Lab, topic_id: UUID, version: int, other_version: int
    ) -> None:
        client = Follower(lab, topic_id, version=version)
        await client.fetch({0: 0})
        client.version = other_version
        assert await client.refused() is ErrorCode.fetch_session_topic_id_error

    async def test_a_repeated_request_makes_the_first_one_fail(self, lab: Lab, topic_id: UUID) -> None:
        client = Follower(lab, topic_id)
        await client.fetch({0: 0})
        first = client.send({}, max_wait=500)
        await settle()
        client.epoch += 1
        await lab.answered(client.send({}))
        await lab.produce(topic_id, 1)
        spoilt = first.response()
        assert spoilt.error_code is ErrorCode.invalid_fetch_session_epoch
        assert (spoilt.session_id, spoilt.responses) == (client.session_id, ())

    async def test_an_emptied_session_makes_its_waiting_request_fail(self, lab: Lab, topic_id: UUID) -> None:
        client = Follower(lab, topic_id)
        await client.fetch({0: 0})
        waiting = client.send({}, max_wait=500)
        await settle()
        client.epoch += 1
        assert await client.fetch({}, forgotten=[0]) == {}
        await lab.produce(topic_id, 1)
        assert waiting.response().error_code is ErrorCode.invalid_fetch_session_epoch

    async def test_a_restart_ends_all_sessions(self, lab: Lab, topic_id: UUID) -> None:
        client = Follower(lab, topic_id)
        await client.fetch({0: 0})
        await lab.restart()
        assert await client.refused() is ErrorCode.fetch_session_id_not_found


class TestFullRequests:
    async def test_the_final_epoch_ends_a_session_and_opens_none(self, lab: Lab, topic_id: UUID) -> None:
        client = Follower(lab, topic_id)
        await client.fetch({0: 0})
        assert await client.fetch({0: 0}, session_epoch=-1) == {0: []}
        assert (client.session_id, len(lab.broker.fetch_sessions)) == (0, 0)

    async def test_a_new_session_replaces_it(self, lab: Lab, topic_id: UUID) -> None:
        client = Follower(lab, topic_id)
        await client.fetch({0: 0})
        first_id, client.epoch = client.session_id, 0
        await client.fetch({0: 0})
        assert client.session_id != first_id
        assert len(lab.broker.fetch_sessions) == 1

    async def test_a_duplicate_partition_is_fetched_once(self, lab: Lab, topic_id: UUID) -> None:
        await lab.produce(topic_id, 1, 1)
        twice = {
            "topic_id": topic_id,
            "partitions": [
                {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20} for offset in (0, 1)
            ],
        }
        assert await Follower(lab, topic_id).fetch({}, topics=[twice]) == {0: [1]}

    async def test_the_cache_of_sessions_may_be_full(self) -> None:
        async with open_lab(max__incremental__fetch__session__cache__slots="0") as lab:
            topic_id = await lab.create_topic()
            client = Follower(lab, topic_id)
            assert await client.fetch({0: 0}) == {0: []}
            assert client.session_id == 0


async def test_the_brokers_setting_limits_the_whole_response() -> None:
    async with open_lab(fetch__max__bytes="1024") as lab:
        topic_id = await lab.create_topic()
        await lab.produce(topic_id, *[1] * 40)
        told = await Follower(lab, topic_id).fetch({0: 0})
        assert 0 < len(told[0]) < 40
