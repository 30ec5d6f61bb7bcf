"""One history on Apache Kafka and on both stores: the answers to DescribeShareGroupOffsets after each step.

Lags are equal. Kafka returns the start offset that it wrote last, which was in force before that write.
Barnabas returns the one in force (docs/decisions/0005), so Kafka's equals Barnabas's of one write before. The
state in the topic is written as by Kafka, and read by ReadShareGroupStateSummary it is exactly Kafka's.
"""

from __future__ import annotations

import pytest

from tests.conformance.conftest import with_topic_store_only
from tests.conformance.generated_histories import Step
from tests.conformance.harness import Client, Lab
from tests.conformance.histories import (
    HISTORIES,
    WRITING_STEPS,
    Described,
    HistoryRun,
    recorded_histories,
    run_history,
)

RECORDED = recorded_histories()
NOT_BEGUN = Described(-1, -1)


class Written:
    """The state that any broker has written by now, derived from the steps."""

    def __init__(self) -> None:
        self.start = -1
        """The record number in the last write; -1 before the first."""
        self.is_known = True
        """False after a log start has moved without a write, because Kafka has not noticed the move then."""
        self.has_taken = False

    def follow(self, step: Step, before: Described, after: Described) -> None:
        verb = step[0]
        if verb in WRITING_STEPS:
            self.start, self.is_known = before.start, True
        elif verb == "alter":
            self.start = after.start
        elif verb in ("delete_offsets", "delete_group", "delete_topic"):
            self.start, self.has_taken = -1, False
        elif verb == "delete_records":
            self.is_known = False
        elif verb == "take":
            self.has_taken = True


async def connect(lab: Lab) -> Client:
    return lab.client()


def history(lab: Lab) -> HistoryRun:
    return HistoryRun(lambda: connect(lab), lambda seconds: lab.advance(round(seconds * 1000)))


def test_every_history_was_recorded() -> None:
    assert {name: len(steps) for name, steps in HISTORIES.items()} == {
        name: len(answers) for name, answers in RECORDED.items()
    }


@pytest.mark.parametrize("name", HISTORIES)
async def test_start_and_lag_are_kafkas(lab: Lab, name: str) -> None:
    answers = await run_history(history(lab), HISTORIES[name])
    written = Written()
    before = NOT_BEGUN
    for step, kafka, ours in zip(HISTORIES[name], RECORDED[name], answers, strict=True):
        written.follow(step, before, ours)
        before = ours
        if not written.is_known:
            continue
        if written.start == -1:
            assert kafka == NOT_BEGUN, step
            # Kafka decides this at the first fetch without writing it; Barnabas has written it.
            assert written.has_taken or ours == NOT_BEGUN, step
        else:
            assert kafka == Described(written.start, ours.lag), (step, ours)


@with_topic_store_only
@pytest.mark.parametrize("name", HISTORIES)
async def test_the_topic_gets_the_records_that_kafka_writes(lab: Lab, name: str) -> None:
    run = history(lab)
    await run.begin()
    written = Written()
    before = NOT_BEGUN
    for step, kafka in zip(HISTORIES[name], RECORDED[name], strict=True):
        await run.do(step)
        ours = await run.describe()
        written.follow(step, before, ours)
        before = ours
        if written.is_known and written.start != -1:
            assert await summary(lab, run) == kafka, step


async def summary(lab: Lab, run: HistoryRun) -> Described:
    """The stored start offset, and the lag that follows from the stored count."""
    asked = {"topic_id": run.topic_id, "partitions": [{"partition": 0, "leader_epoch": -1}]}
    response = await lab.another_broker().ask(
        "read_share_group_state_summary", group_id="group", topics=[asked]
    )
    kept = response.results[0].partitions[0]
    log = lab.broker.logs.get(lab.broker.metadata.image.topics_by_name["t"], 0)
    assert log is not None
    return Described(kept.start_offset, log.high_watermark - kept.start_offset - kept.delivery_complete_count)
