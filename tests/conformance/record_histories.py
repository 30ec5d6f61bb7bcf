"""Records the answers of a running Apache Kafka to `histories.HISTORIES`:

python -m tests.conformance.record_histories HOST:PORT
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable

from tests.conformance.histories import HISTORIES, RECORDING, HistoryRun, run_history
from tests.conformance.socket_requests import SocketRequests


def connector(address: str) -> Callable[[], Awaitable[SocketRequests]]:
    return lambda: SocketRequests.connect(address)


async def record(address: str) -> None:
    # Kafka creates its internal topics at the first look-up.
    requests = await SocketRequests.connect(address)
    await requests.ask("find_coordinator", key_type=0, coordinator_keys=["first"])
    await asyncio.sleep(5)
    recorded: dict[str, list[tuple[int, int]]] = {}
    for number, (name, steps) in enumerate(HISTORIES.items()):
        unused = f"{number}-{os.getpid()}"
        run = HistoryRun(connector(address), asyncio.sleep, topic=f"t{unused}", group_id=f"group{unused}")
        recorded[name] = [(one.start, one.lag) for one in await run_history(run, steps)]
        print(name, recorded[name])
    lines = [f"{json.dumps(name)}: {json.dumps(answers)}" for name, answers in recorded.items()]
    RECORDING.parent.mkdir(exist_ok=True)
    RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
