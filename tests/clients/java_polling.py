"""Loops around a JavaShareConsumer that the tests share."""

from collections.abc import Sequence

from tests.clients.polling import eventually
from tests.clients.share_probe import GroupOffset, JavaRecord, JavaShareConsumer, ShareProbe


def poll_some(consumer: JavaShareConsumer) -> list[JavaRecord]:
    """Poll until records arrive; the records of that one poll."""
    return eventually(consumer.poll, awaited=f"{consumer.name} gets records")


def poll_values(consumer: JavaShareConsumer, count: int) -> list[str | None]:
    """Poll until `count` records have arrived, with implicit acceptance; their values."""
    values: list[str | None] = []

    def poll() -> bool:
        values.extend(record.value for record in consumer.poll())
        return len(values) >= count

    eventually(poll, awaited=f"{consumer.name} gets {count} records")
    return values


def accept(consumer: JavaShareConsumer, records: Sequence[JavaRecord]) -> None:
    """Accept records and assert that the broker confirmed each partition's."""
    consumer.acknowledge(records)
    results = consumer.commit_sync()
    assert results
    assert [result.error for result in results] == [None] * len(results)


def wait_for_lag(probe: ShareProbe, group: str, lag: int) -> list[GroupOffset]:
    """Wait until the group's lag over all its partitions is this; returns its start offsets then."""

    def offsets_at_lag() -> list[GroupOffset]:
        offsets = probe.group_offsets(group)
        total = sum(each.lag for each in offsets if each.lag is not None)
        return offsets if offsets and total == lag else []

    return eventually(offsets_at_lag, awaited=f"{group} has lag {lag}")
