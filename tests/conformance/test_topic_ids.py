"""A changed topic id in a partition's directory. The partition is refused until the file is repaired; it is
never taken for an empty one.
"""

from __future__ import annotations

import pytest

from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.storage.errors import StorageError
from tests.conformance.conftest import Stage, with_topic_store_only
from tests.conformance.harness import DATA_DIRECTORY, INTERNAL_PARTITIONS, Lab
from tests.conformance.share_member import GROUP
from tests.conformance.test_transaction_requests import ID
from tests.conformance.transacting import begun, state

RETRIABLE = (ErrorCode.coordinator_not_available, ErrorCode.coordinator_load_in_progress)


class ChangedId:
    """The topic id in the directory of a partition, with one other character."""

    def __init__(self, lab: Lab, directory_name: str) -> None:
        self.path = f"{DATA_DIRECTORY}/{directory_name}/partition.metadata"
        self._lab = lab
        self._content = bytes(lab.filesystem.files[self.path])
        lab.filesystem.files[self.path][-2:-1] = b"A" if self._content[-2:-1] == b"B" else b"B"

    def restore(self) -> None:
        self._lab.filesystem.files[self.path][:] = self._content


def remedies(printed: str, path: str) -> list[str]:
    return [line for line in printed.splitlines() if path in line and "log restore-topic-id" in line]


async def test_a_partition_with_another_topic_id_is_offline_and_its_records_come_back_with_the_id(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = stage.lab
    await stage.produce(5)
    await lab.broker.close()
    changed = ChangedId(lab, "t-0")
    await lab.start()
    for _ in range(2):
        refused = await lab.admin.ask(
            "list_offsets", topics=[{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        )
        assert refused.topics[0].partitions[0].error_code is ErrorCode.kafka_storage_error
    assert len(remedies(capsys.readouterr().out, changed.path)) == 1
    await lab.broker.close()
    changed.restore()
    await lab.start()
    assert await stage.member().take() == [(0, 4, 1)]


@pytest.mark.parametrize("is_clean", [True, False])
async def test_accepted_records_are_not_delivered_again_by_another_topic_id_of_the_offsets_topic(
    stage: Stage, capsys: pytest.CaptureFixture[str], is_clean: bool
) -> None:
    lab = stage.lab
    await stage.produce(5)
    member = stage.member()
    await member.take()
    await member.accept(0, 2)
    left = lab.filesystem.copy()
    await lab.broker.close()
    if not is_clean:
        lab.filesystem = left
    changed = ChangedId(lab, f"__consumer_offsets-{partition_of_key(GROUP, INTERNAL_PARTITIONS)}")
    await lab.start()
    assert (await stage.member().heartbeat(0, ["t"])).error_code in RETRIABLE
    assert remedies(capsys.readouterr().out, changed.path)
    await lab.broker.close()
    changed.restore()
    await lab.start()
    again = stage.member(2)
    await again.join("t")
    assert await again.take() == [(3, 4, 1)]


async def test_a_changed_id_of_the_transactions_topic_forgets_no_transaction(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    await lab.create_topic("t", 1)
    await begun(lab)
    await lab.broker.close()
    changed = ChangedId(lab, f"__transaction_state-{partition_of_key(ID, INTERNAL_PARTITIONS)}")
    await lab.start()
    refused = await lab.client().ask(
        "init_producer_id", transactional_id=ID, transaction_timeout=60_000, producer_id=-1, producer_epoch=-1
    )
    assert refused.error_code in RETRIABLE
    assert remedies(capsys.readouterr().out, changed.path)
    await lab.broker.close()
    changed.restore()
    await lab.start()
    assert await state(lab) == "Ongoing"


@with_topic_store_only
async def test_a_changed_id_of_the_share_state_topic_forgets_no_acknowledgement(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = stage.lab
    await stage.produce(5)
    member = stage.member()
    await member.take()
    await member.accept(0, 2)
    name = lab.state_directory(GROUP, stage.partition)
    await member.leave_session()
    await lab.broker.close()
    changed = ChangedId(lab, name)
    await lab.start()
    again = stage.member(2)
    await again.join("t")
    got = await again.fetch()
    assert not got.acquired
    assert remedies(capsys.readouterr().out, changed.path)
    await lab.broker.close()
    changed.restore()
    await lab.start()
    again = stage.member(3)
    await again.join("t")
    assert await again.take() == [(3, 4, 2)]


async def test_the_metadata_with_another_topic_id_refuses_the_start(lab: Lab) -> None:
    topic_id = await lab.create_topic("t", 1)
    await lab.produce(topic_id, 3)
    await lab.broker.close()
    changed = ChangedId(lab, "__cluster_metadata-0")
    with pytest.raises(
        StorageError, match=f"{changed.path} names .*restore-topic-id {DATA_DIRECTORY}/__cluster_metadata-0"
    ):
        await lab.start()
    changed.restore()
    await lab.start()
    assert (await lab.offsets(GROUP, TopicIdPartition(topic_id, 0))) == (-1, -1)
    assert "t-0" in lab.filesystem.list_directory(DATA_DIRECTORY)
