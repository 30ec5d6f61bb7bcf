"""The controller: starts, decisions one after the other, failed appends, and the calls of listeners."""

from pathlib import Path
from uuid import UUID

import pytest

from barnabas.coordinator.metadata.config_decisions import ResourceChange, SettingChange
from barnabas.coordinator.metadata.controller import QUEUED_DECISIONS_MAX
from barnabas.coordinator.metadata.image import ConfigResource, MetadataChanges, ResourceType
from barnabas.coordinator.metadata.topic_decisions import MorePartitions, NewTopic
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import read_header
from barnabas.storage.errors import AppendQueueFull, LogOffline, StorageError
from tests.coordinator.metadata.metadata_fakes import MemoryLog, controller_over


async def test_the_first_start_registers_the_node_and_its_features(tmp_path: Path) -> None:
    controller = controller_over(MemoryLog(), tmp_path)
    await controller.start()
    assert controller.node_epoch == 0
    assert controller.image.features == {
        "metadata.version": 33,
        "group.version": 1,
        "share.version": 2,
        "transaction.version": 2,
    }
    assert controller.image.brokers[1].end_points[0].host == "h"
    assert controller.last_offset == 4


async def test_a_start_that_cannot_be_written_down_is_the_disks_fault(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="registered"):
        await controller_over(MemoryLog(broken=True), tmp_path).start()


async def test_each_start_counts_the_leader_epoch_up(tmp_path: Path) -> None:
    store = MemoryLog()
    first = controller_over(store, tmp_path)
    await first.start()
    await first.create_topics([NewTopic("t", 1)])
    second = controller_over(store, tmp_path)
    await second.start()
    assert second.node_epoch == 1
    assert second.image.topics_by_name["t"].partitions[0].leader_epoch == 1
    assert [read_header(batch).leader_epoch for batch in store.batches] == [0, 0, 1]


async def test_decisions_survive_a_crash(tmp_path: Path) -> None:
    store = MemoryLog()
    first = controller_over(store, tmp_path)
    await first.start()
    await first.create_topics([NewTopic("a", 2, configs={"k": "v"}), NewTopic("b", 1)])
    await first.create_partitions([MorePartitions("a", 4)])
    await first.delete_topics([first.image.topics_by_name["b"].topic_id])
    second = controller_over(store, tmp_path)
    await second.start()
    assert {name: len(topic.partitions) for name, topic in second.image.topics_by_name.items()} == {"a": 4}
    assert second.image.configs(ResourceType.TOPIC, "a") == {"k": "v"}


async def test_validation_alone_writes_nothing(tmp_path: Path) -> None:
    store = MemoryLog()
    controller = controller_over(store, tmp_path)
    await controller.start()
    (creation,) = await controller.create_topics([NewTopic("t", 1)], validate_only=True)
    assert creation.error is None
    assert controller.image.topics_by_name == {}
    assert len(store.batches) == 1


async def test_a_decision_waits_for_the_append_before_it(tmp_path: Path) -> None:
    store = MemoryLog()
    controller = controller_over(store, tmp_path)
    await controller.start()
    store.held = True
    first = controller.create_topics([NewTopic("t", 1)])
    second = controller.create_topics([NewTopic("t", 1)])
    assert not first.done
    assert controller.image.topics_by_name == {}
    store.held = False
    store.release()
    assert first.result()[0].error is None
    refused = second.result()[0].error
    assert refused is not None
    assert refused.code is ErrorCode.topic_already_exists


async def test_a_failed_append_changes_nothing_and_says_so(tmp_path: Path) -> None:
    store = MemoryLog()
    controller = controller_over(store, tmp_path)
    await controller.start()
    store.broken = True
    with pytest.raises(ApiError) as raised:
        await controller.create_topics([NewTopic("t", 1)])
    assert raised.value.code is ErrorCode.kafka_storage_error
    assert controller.image.topics_by_name == {}
    store.broken = False
    assert (await controller.create_topics([NewTopic("t", 1)]))[0].error is None


async def test_a_decision_that_raises_fails_its_reply_and_delays_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    store = MemoryLog()
    controller = controller_over(store, tmp_path)
    await controller.start()
    monkeypatch.setattr(controller, "_decide_producer_id_block", broken)
    store.held = True
    controller.create_topics([NewTopic("t", 1)])
    breaking = controller.allocate_producer_id_block()
    behind = controller.create_topics([NewTopic("t", 1)])
    store.held = False
    store.release()
    with pytest.raises(ZeroDivisionError):
        breaking.result()
    assert behind.done


@pytest.mark.parametrize("is_held", [False, True])
async def test_a_defect_of_a_listener_fails_the_reply_and_delays_no_other(
    tmp_path: Path, is_held: bool
) -> None:
    def broken(_: MetadataChanges) -> None:
        controller.listeners.remove(broken)
        raise ZeroDivisionError

    store = MemoryLog()
    controller = controller_over(store, tmp_path)
    await controller.start()
    controller.listeners.append(broken)
    store.held = is_held
    breaking = controller.create_topics([NewTopic("t", 1)])
    behind = controller.create_topics([NewTopic("u", 1)])
    store.held = False
    if is_held:
        store.release()
    assert isinstance(breaking.error, ZeroDivisionError)
    assert [one.error for one in behind.result()] == [None]


async def test_waiting_decisions_have_a_bound(tmp_path: Path) -> None:
    store = MemoryLog()
    controller = controller_over(store, tmp_path)
    await controller.start()
    store.held = True
    replies = [controller.delete_topics([UUID(int=5)]) for _ in range(3)]
    assert all(reply.done for reply in replies), "a decision without records waits for nothing"
    for number in range(QUEUED_DECISIONS_MAX + 1):
        controller.create_topics([NewTopic(f"t{number}", 1)])
    refused = controller.create_topics([NewTopic("one-too-many", 1)])
    with pytest.raises(ApiError) as raised:
        refused.result()
    assert raised.value.code is ErrorCode.throttling_quota_exceeded
    store.held = False
    store.release()
    assert len(controller.image.topics_by_name) == QUEUED_DECISIONS_MAX + 1


async def test_listeners_hear_of_a_change_before_the_reply(tmp_path: Path) -> None:
    controller = controller_over(MemoryLog(), tmp_path)
    await controller.start()
    heard: list[MetadataChanges] = []
    controller.listeners.append(heard.append)
    reply = controller.create_topics([NewTopic("t", 1)])
    reply.when_done(lambda _: heard.append(MetadataChanges()))
    change = ResourceChange(ConfigResource(ResourceType.TOPIC, "t"), [SettingChange("k", 0, "v")])
    await controller.alter_configs([change])
    assert [topic.name for topic in heard[0].created] == ["t"]
    assert heard[1] == MetadataChanges()
    assert heard[2].configs == [ConfigResource(ResourceType.TOPIC, "t")]


async def test_no_producer_id_is_handed_out_twice(tmp_path: Path) -> None:
    store = MemoryLog()
    first = controller_over(store, tmp_path)
    await first.start()
    assert await first.allocate_producer_id_block() == range(1000)
    second = controller_over(store, tmp_path)
    await second.start()
    assert await second.allocate_producer_id_block() == range(1000, 2000)


async def test_a_failed_append_is_reported_once_and_a_refused_one_is_not(tmp_path: Path) -> None:
    store = MemoryLog()
    controller = controller_over(store, tmp_path)
    await controller.start()
    failures: list[Exception] = []
    controller.on_failed = failures.append
    await controller.create_topics([NewTopic("a", 1)])
    errors = [AppendQueueFull("full"), LogOffline("the disk is gone"), LogOffline("it still is")]
    store.broken = True
    for store.fault in errors:
        with pytest.raises(ApiError):
            await controller.create_topics([NewTopic("b", 1)])
    assert list(map(repr, failures)) == [repr(errors[1])]
