"""Java's and librdkafka's share consumers in one group, on a topic that several producers fill."""

import itertools
from concurrent.futures import ThreadPoolExecutor

from tests.clients.cluster import Cluster, numbered, unique
from tests.clients.confluent_polling import poll, share_consumer, text
from tests.clients.java_polling import wait_for_lag
from tests.clients.polling import SECONDS_MAX, eventually
from tests.clients.share_probe import ShareProbe

PRODUCERS = 4
RECORDS_EACH = 500


def test_java_and_confluent_consumers_of_one_group_share_every_record_once(
    bootstrap: str, cluster: Cluster, probe: ShareProbe
) -> None:
    topic, group = cluster.topic(partition_count=2), cluster.group()
    java = probe.consumer(unique("java"), group, [topic], max_poll_records=50)
    confluent = share_consumer(bootstrap, group, topic, mode="implicit")
    delivered: dict[str, list[str]] = {"java": [], "confluent": []}

    def poll_both() -> bool:
        delivered["java"].extend(record.value or "" for record in java.poll(50))
        delivered["confluent"].extend(map(text, poll(confluent)))
        return sum(map(len, delivered.values())) >= len(first) + PRODUCERS * RECORDS_EACH

    def both_have_joined() -> bool:
        first.append(f"first-{len(first)}")
        cluster.produce(topic, first[-1:])
        poll_both()
        return all(delivered.values())

    first: list[str] = []
    eventually(both_have_joined, awaited="both kinds of consumer get records")
    expected = [numbered(RECORDS_EACH, f"producer-{number}") for number in range(PRODUCERS)]
    with ThreadPoolExecutor(PRODUCERS) as producers:
        sent = [
            producers.submit(cluster.produce, topic, values, linger_ms=5, batch_num_messages=20)
            for values in expected
        ]
        eventually(poll_both, awaited="every record is delivered")
    assert [len(offsets.result()) for offsets in sent] == [RECORDS_EACH] * PRODUCERS
    assert sorted(delivered["java"] + delivered["confluent"]) == sorted(itertools.chain(first, *expected))
    confluent.commit_sync(SECONDS_MAX)
    java.commit_sync()
    confluent.close()
    java.close()
    wait_for_lag(probe, group, 0)
