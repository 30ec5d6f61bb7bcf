"""Produces ten records and reads them in a share group: `round_trip.py BOOTSTRAP TOPIC GROUP`.

The tests run it with the Python of an installed artefact, so it uses nothing but `barnabas`.
"""

import asyncio
import sys

import barnabas
from barnabas.client import Producer, ShareConsumer
from barnabas.protocol import record_keys, record_walk
from barnabas.runtime.running_code import running_code

RECORD_COUNT = 10


async def round_trip(bootstrap: str, topic: str, group: str) -> list[bytes | None]:
    """The values that were read, in the order of their offsets."""
    async with Producer(bootstrap) as producer:
        for number in range(RECORD_COUNT):
            await producer.send_and_wait(topic, str(number).encode())
    values: list[bytes | None] = []
    async with ShareConsumer(bootstrap, group=group, topics=[topic]) as consumer:
        async for record in consumer:
            async with record:
                values.append(record.value)
            if len(values) == RECORD_COUNT:
                break
    return values


async def main(bootstrap: str, topic: str, group: str) -> None:
    values = await round_trip(bootstrap, topic, group)
    assert values == [str(number).encode() for number in range(RECORD_COUNT)], values
    print("package =", barnabas.__file__)
    print("code =", running_code())
    print("native = ", record_walk.IS_NATIVE and record_keys.IS_NATIVE, sep="")


asyncio.run(main(*sys.argv[1:]))
