"""Records the answers of a running Apache Kafka, without an authorizer, to `state_requests.REQUESTS`:

python -m tests.conformance.record_state_requests HOST:PORT
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from tests.conformance.socket_requests import SocketRequests
from tests.conformance.state_requests import RECORDING, REQUESTS, plain, with_topic


async def record(address: str) -> None:
    requests = await SocketRequests.connect(address)
    topic = {"name": f"state-{os.getpid()}", "num_partitions": 2, "replication_factor": 1}
    created = await requests.ask("create_topics", topics=[topic], timeout=10_000)
    topic_id = created.topics[0].topic_id
    # Kafka creates its internal topics at the first look-up.
    await requests.ask("find_coordinator", key_type=2, coordinator_keys=["g:AAECAwQFBgcICQoLDA0ODw:0"])
    await asyncio.sleep(5)
    answers = [
        plain(await requests.ask(api, version, **with_topic(values, topic_id)), topic_id)
        for api, version, values in REQUESTS
    ]
    RECORDING.parent.mkdir(exist_ok=True)
    RECORDING.write_text("[\n" + ",\n".join(map(json.dumps, answers)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
