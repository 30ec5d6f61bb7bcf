"""Many dead letters at once: no record's letter costs more because others wait beside it.

The costs are counted in bytes that are read and in calls, so they are the same on every machine.
"""

from __future__ import annotations

import errno
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.conftest import Stage, make_stage
from tests.conformance.dead_lettering import (
    COPIES_RECORDS,
    ENABLE,
    LETTER_TOPIC,
    offsets_of_letters,
    use_dead_letters,
)
from tests.conformance.harness import Lab, batch, open_lab, produce_fields, settle
from tests.conformance.share_member import REJECT, ShareMember

RECORDS = 300
FEW = 100
BATCH_RECORDS = 50
VALUE_BYTES = 10_000
"""About a hundred letters fit into a batch, so RECORDS are three batches: a search that is repeated for the
letters of each batch shows from the third one on.
"""


async def taken(stage: Stage, count: int, value_bytes: int = 1) -> ShareMember:
    """A member that holds `count` records, in batches of 50."""
    for _ in range(count // BATCH_RECORDS):
        records = batch(BATCH_RECORDS, stage.lab.clock.wall_ms(), value_bytes)
        fields = produce_fields(stage.partition.topic_id, 0, records)
        response = await stage.lab.admin.ask("produce", **fields)
        assert response.responses[0].partition_responses[0].error_code == 0, response
    await settle()
    member = stage.member()
    acquired = await member.take(max_records=count, max_bytes=1 << 24)
    assert (acquired[0][0], acquired[-1][1]) == (0, count - 1)
    return member


async def rejecting(stage: Stage) -> ShareMember:
    """A member that holds many records, which it can reject; their letters copy them."""
    await stage.lab.create_topic(LETTER_TOPIC, errors__deadletterqueue__group__enable="true")
    await use_dead_letters(stage.lab, **{COPIES_RECORDS: "true"})
    member = await taken(stage, RECORDS, VALUE_BYTES)
    await letter_log(stage.lab)
    return member


async def letter_log(lab: Lab) -> PartitionLog:
    """The log of the letters, opened before it is first used."""
    topic = lab.broker.metadata.image.topics_by_name[LETTER_TOPIC]
    return await lab.broker.logs.open(topic, 0)


async def all_written(lab: Lab, count: int) -> None:
    """Returns when so many letters are written; no time passes."""
    log = await letter_log(lab)
    while log.log_end_offset < count:
        await settle()
    await settle()


def read_of(lab: Lab, directory_name: str) -> int:
    """The bytes that were read of a log's records."""
    read = lab.filesystem.read_bytes
    return sum(
        count for path, count in read.items() if f"/{directory_name}/" in path and path.endswith(".log")
    )


@contextmanager
def counted_calls() -> Generator[Counter[str]]:
    """The calls of functions within the block, in `calls`."""
    counts: Counter[str] = Counter()
    sys.setprofile(lambda _frame, event, _argument: counts.update(calls=int(event == "call")))
    try:
        yield counts
    finally:
        sys.setprofile(None)


async def interrupted(stage: Stage, *, is_clean: bool) -> int:
    """A group whose broker was stopped or killed while it wrote many letters: the first batch is in the
    topic, although its fsync has failed. Returns the number of letters in the topic.
    """
    member = await rejecting(stage)
    filesystem = stage.lab.filesystem
    filesystem.sync_error, filesystem.failing_suffix = errno.EIO, f"{LETTER_TOPIC}-0/{0:020d}.log"
    await member.acknowledge([(0, RECORDS - 1, REJECT)])
    await settle()
    filesystem.sync_error = None
    await stage.restart(is_clean=is_clean)
    written = (await letter_log(stage.lab)).log_end_offset
    assert 0 < written < RECORDS
    return written


@pytest.mark.parametrize("is_clean", [True, False], ids=["stop", "kill"])
async def test_after_a_stop_or_a_kill_the_letters_are_searched_once(stage: Stage, *, is_clean: bool) -> None:
    written = await interrupted(stage, is_clean=is_clean)
    stage.lab.filesystem.read_bytes.clear()
    assert await stage.member().take() == []
    await all_written(stage.lab, RECORDS)
    assert await stage.offsets() == (RECORDS, 0)
    assert read_of(stage.lab, f"{LETTER_TOPIC}-0") < 2 * written * VALUE_BYTES
    assert await offsets_of_letters(stage.lab) == list(range(RECORDS))


async def test_after_a_kill_the_letters_cost_at_most_twice_the_calls_of_undisturbed_ones() -> None:
    async with open_lab() as lab:
        member = await rejecting(await make_stage(lab))
        with counted_calls() as undisturbed:
            await member.acknowledge([(0, RECORDS - 1, REJECT)])
            await all_written(lab, RECORDS)
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await interrupted(stage, is_clean=False)
        with counted_calls() as after_a_kill:
            await stage.member().take()
            await all_written(lab, RECORDS)
    assert after_a_kill["calls"] < 2 * undisturbed["calls"]


async def test_after_an_outage_of_their_topic_letters_that_were_not_begun_are_not_searched(
    stage: Stage,
) -> None:
    await stage.lab.create_topic(LETTER_TOPIC)
    await use_dead_letters(stage.lab, **{COPIES_RECORDS: "true"})
    member = await taken(stage, RECORDS, VALUE_BYTES)
    await member.acknowledge([(0, RECORDS - 1, REJECT)])
    await settle()
    assert await stage.offsets() == (0, RECORDS)
    await enable(stage.lab)
    await all_written(stage.lab, RECORDS)
    assert await stage.offsets() == (RECORDS, 0)
    assert read_of(stage.lab, f"{LETTER_TOPIC}-0") == 0
    assert await offsets_of_letters(stage.lab) == list(range(RECORDS))


async def test_the_copied_records_are_read_once_although_few_letters_fit_into_a_batch(stage: Stage) -> None:
    await stage.lab.create_topic(
        LETTER_TOPIC, errors__deadletterqueue__group__enable="true", max__message__bytes="25000"
    )
    await use_dead_letters(stage.lab, **{COPIES_RECORDS: "true"})
    member = await taken(stage, FEW, VALUE_BYTES)
    stage.lab.filesystem.read_bytes.clear()
    await member.acknowledge([(0, FEW - 1, REJECT)])
    await all_written(stage.lab, FEW)
    assert read_of(stage.lab, "t-0") < 2 * FEW * VALUE_BYTES
    assert await offsets_of_letters(stage.lab) == list(range(FEW))


async def test_twice_as_many_letters_cost_twice_as_many_calls_although_few_fit_into_a_batch() -> None:
    calls = [await calls_for_letters(count) for count in (150, 300)]
    assert calls[1] < 2.2 * calls[0]


async def calls_for_letters(count: int) -> int:
    """The calls of a broker that writes so many letters, two in a batch."""
    async with open_lab() as lab:
        stage = await make_stage(lab)
        await lab.create_topic(
            LETTER_TOPIC, errors__deadletterqueue__group__enable="true", max__message__bytes="500"
        )
        await use_dead_letters(lab)
        member = await taken(stage, count)
        await letter_log(lab)
        with counted_calls() as counts:
            await member.acknowledge([(0, count - 1, REJECT)])
            await all_written(lab, count)
        assert await stage.offsets() == (count, 0)
        return counts["calls"]


async def enable(lab: Lab) -> None:
    config = {"name": ENABLE, "config_operation": 0, "value": "true"}
    resource = {"resource_type": 2, "resource_name": LETTER_TOPIC, "configs": [config]}
    response = await lab.admin.ask("incremental_alter_configs", resources=[resource])
    assert response.responses[0].error_code == 0, response
