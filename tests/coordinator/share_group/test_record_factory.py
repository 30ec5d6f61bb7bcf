"""Records made from a group, written to bytes and replayed, give the group again."""

from barnabas.coordinator.share_group.record_factory import (
    current_member_assignment,
    group_metadata,
    group_tombstones,
    member_metadata,
    member_tombstones,
    state_partition_metadata,
    target_assignment_member,
    target_assignment_metadata,
)
from barnabas.coordinator.share_group.registry import ShareGroupRegistry
from barnabas.coordinator.share_group.share_group import ShareGroup
from barnabas.protocol.share_group_records import (
    ShareGroupRecord,
    decode_share_group_record,
    encode_share_group_key,
    encode_share_group_value,
)
from tests.coordinator.share_group.simulated_coordinator import (
    FIRST_WALL_MS,
    GROUP,
    TOPIC,
    Simulation,
    durable_state,
)


def _records_of(group: ShareGroup) -> list[ShareGroupRecord]:
    group_id = group.group_id
    records = [group_metadata(group, group.group_epoch, group.metadata_hash)]
    records += [member_metadata(group_id, member) for member in group.members.values()]
    records += [current_member_assignment(group_id, member) for member in group.members.values()]
    records += [
        target_assignment_member(group_id, member_id, target) for member_id, target in group.target.items()
    ]
    assert group.assigned_at_ms is not None
    assigned_wall_ms = FIRST_WALL_MS + group.assigned_at_ms
    records += [target_assignment_metadata(group_id, group.assignment_epoch, assigned_wall_ms)]
    return [*records, state_partition_metadata(group_id, group.state_partitions)]


def _through_bytes(record: ShareGroupRecord) -> ShareGroupRecord:
    key, value = record
    decoded = decode_share_group_record(
        encode_share_group_key(key), None if value is None else encode_share_group_value(value)
    )
    assert decoded is not None
    return decoded


def test_a_groups_records_replay_to_the_group() -> None:
    simulation = Simulation()
    simulation.catalog.create(TOPIC, 3)
    simulation.share_state.failing_partitions = {1}
    simulation.join("a")
    simulation.advance(1_000)
    simulation.join("b", TOPIC, "absent")
    group = simulation.group()
    registry = ShareGroupRegistry("share", max_groups=1, other_group_type=lambda _: None)
    for record in _records_of(group):
        registry.replay(_through_bytes(record), simulation.moment.monotonic_of)
    assert durable_state(registry.existing(GROUP)) == durable_state(group)


def test_the_incarnation_is_in_every_group_record() -> None:
    simulation = Simulation()
    simulation.join("a")
    simulation.leave("a")
    assert simulation.group().incarnation == simulation.wall_ms


def test_tombstones_have_a_key_and_no_value() -> None:
    records = [*member_tombstones(GROUP, "a"), *group_tombstones(GROUP)]
    assert [_through_bytes(record) for record in records] == records
    assert all(value is None and key.group_id == GROUP for key, value in records)
