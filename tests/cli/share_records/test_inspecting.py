"""`barnabas inspect` beside partitions whose logs are offline, against the real broker in virtual time."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from barnabas.cli.exit_codes import ExitCode
from barnabas.cli.printing import Printer
from barnabas.cli.share_records.inspecting import Wanted, inspect
from barnabas.cli.target import Target
from barnabas.client import BrokerUnavailableError
from barnabas.client.network.security import PLAINTEXT
from barnabas.storage.format.partition_metadata import encode_partition_metadata
from tests.client.virtual_world import ADDRESS, GROUP, TOPIC, World, virtually
from tests.conformance.harness import DATA_DIRECTORY
from tests.storage.log_building import TOPIC_ID

EVERYTHING = Wanted(None, None, None, None, (), 10, with_records=False)


async def group_of_three_partitions(world: World, *offline: int) -> None:
    """A group that reads three partitions of a record each, of which some are offline since a restart."""
    await world.topic(TOPIC, partition_count=3)
    await world.group()
    for index in range(3):
        await world.write(TOPIC, "a", partition=index)
    async with world.consumer(TOPIC) as consumer:
        records = aiter(consumer)
        for _ in range(3):
            (await anext(records)).release()
    await world.stop()
    for index in offline:
        path = f"{DATA_DIRECTORY}/{TOPIC}-{index}/partition.metadata"
        world.filesystem.files[path] = bytearray(encode_partition_metadata(TOPIC_ID))
    await world.start()


async def inspected(wanted: Wanted, *, as_json: bool = True) -> tuple[ExitCode, list[Any]]:
    out = io.StringIO()
    target = Target(ADDRESS, PLAINTEXT, "inspect")
    exit_code = await inspect(target, GROUP, wanted, Printer(as_json=as_json, out=out))
    lines = out.getvalue().splitlines()
    return exit_code, [json.loads(line) for line in lines] if as_json else lines


@virtually
async def test_the_other_partitions_are_shown_beside_one_that_is_offline(world: World) -> None:
    await group_of_three_partitions(world, 1)
    exit_code, rows = await inspected(EVERYTHING)
    assert exit_code is ExitCode.NOT_ALL
    assert [(row["type"], row["partition"]) for row in rows] == [
        ("partition", 0),
        ("range", 0),
        ("unavailable", 1),
        ("partition", 2),
        ("range", 2),
    ]
    assert f"{TOPIC}-1 could not be opened" in rows[2]["reason"]
    _, lines = await inspected(EVERYTHING, as_json=False)
    (line,) = [line for line in lines if line.startswith(f"{TOPIC}-1  (")]
    assert "could not be opened" in line


@virtually
async def test_a_partition_that_is_asked_for_and_offline_is_an_error(world: World) -> None:
    await group_of_three_partitions(world, 1)
    with pytest.raises(BrokerUnavailableError, match=f"{TOPIC}-1 could not be opened"):
        await inspected(EVERYTHING._replace(topic=TOPIC, partition=1))


@virtually
async def test_a_group_whose_partitions_are_all_available_is_shown_whole(world: World) -> None:
    await group_of_three_partitions(world)
    exit_code, rows = await inspected(EVERYTHING)
    assert (exit_code, [row["partition"] for row in rows if row["type"] == "partition"]) == (0, [0, 1, 2])
