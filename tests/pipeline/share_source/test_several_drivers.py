"""Two to four queries in one scripted group: each record is in one sink, or its query reports it."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.state_files import StateFiles
from tests.pipeline.share_source.scripted import ScriptedGroup
from tests.pipeline.share_source.test_exactly_once import Driver, logged, offsets_of

RECORDS = 40

CLEAN_STOPS = ("trigger", "stop in order")
KILLS = (
    "killed idle",
    "killed before it wrote",
    "killed before Spark's commit",
    "killed before it asks again",
)


class Query:
    """A query with its log and a sink that is idempotent by batch."""

    def __init__(self, number: int, group: ScriptedGroup, directory: str) -> None:
        self.group = group
        self.sink: dict[int, list[int]] = {}
        self.log = ShareOffset(group_id="g", member_id=f"member-{number}")
        self._committed = self.log.sequence
        self._state_dir = directory
        self._is_acknowledged = True
        self.doubtful = Counter[int]()
        """Records of a batch that was written and not acknowledged when the query was killed."""
        self._driver = self._new_driver()

    def _new_driver(self) -> Driver:
        return Driver(self.group, stateDir=self._state_dir)

    async def happen(self, event: str) -> None:
        if event == "trigger":
            await self.trigger()
        elif event == "stop in order":
            await self._stop_in_order()
        elif event == "acquire":
            await self._acquire()
        elif event == "repeat":
            await self._run_batch()
        elif event == "repeat and be killed before it wrote":
            await self._driver.begin_batch(self.log)
            await self._be_killed("killed idle")
        elif event == "repeat and be killed before Spark's commit":
            await self._run_batch(is_committed=False)
            await self._be_killed("killed idle")
        else:
            await self._be_killed(event)

    async def trigger(self) -> bool:
        """Run a batch, if there is one: the one that was cut short first."""
        if self._committed < self.log.sequence:
            await self._run_batch()
        if not await self._acquire():
            return False
        await self._run_batch()
        return True

    async def _acquire(self) -> bool:
        end = await self._driver.next_offset(self.log, 5)
        self._is_acknowledged = True
        if end is None:
            return False
        self.log, self._is_acknowledged = logged(end), False
        return True

    async def _run_batch(self, *, is_committed: bool = True) -> None:
        batch = await self._driver.begin_batch(self.log)
        self.sink.setdefault(batch.sequence, offsets_of(batch))
        self._is_acknowledged = False
        if is_committed:
            self._committed = self.log.sequence

    async def _stop_in_order(self) -> None:
        files = StateFiles(self._state_dir)
        files.ask_to_stop()
        files.note_committed({self.log.member_id: self._committed})
        await self._driver.close()
        self._is_acknowledged |= self._committed == self.log.sequence
        self._driver = self._new_driver()

    async def _be_killed(self, event: str) -> None:
        is_idle = event == "killed idle" or self._committed < self.log.sequence
        if not is_idle and await self._acquire() and event != "killed before it wrote":
            await self._run_batch(is_committed=event == "killed before it asks again")
        if not self._is_acknowledged:
            self.doubtful.update(self.sink.get(self.log.sequence, []))
        await self.group.close()
        self._driver = self._new_driver()

    @property
    def metrics(self) -> ShareMetrics:
        return self._driver.metrics

    @property
    def written(self) -> Counter[int]:
        return Counter(offset for batch in self.sink.values() for offset in batch)


def run(count: int, events: list[tuple[int, str]]) -> list[Query]:
    """Let the events happen to queries of one group, and then all of them read to the end."""

    async def happen(directory: str) -> list[Query]:
        first = ScriptedGroup(RECORDS)
        groups = [first, *(first.another_member() for _ in range(count - 1))]
        queries = [Query(number, group, f"{directory}/{number}") for number, group in enumerate(groups)]
        for index, event in events:
            await queries[index % count].happen(event)
        for one in queries * 2:
            while await one.trigger():
                pass
        return queries

    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(happen(directory))


def events_of(*kinds: str) -> st.SearchStrategy[list[tuple[int, str]]]:
    return st.lists(st.tuples(st.integers(0, 3), st.sampled_from(kinds)), max_size=15)


@given(st.integers(2, 4), events_of(*CLEAN_STOPS))
@settings(max_examples=25)
def test_with_clean_stops_no_record_is_lost_or_repeated(count: int, events: list[tuple[int, str]]) -> None:
    queries = run(count, events)
    assert sum((one.written for one in queries), Counter[int]()) == Counter(range(RECORDS))
    assert not any(one.metrics.twice for one in queries)


@given(st.integers(2, 4), events_of(*CLEAN_STOPS, *KILLS))
@settings(max_examples=50)
def test_with_kills_no_record_is_lost_and_only_written_unacknowledged_ones_are_repeated(
    count: int, events: list[tuple[int, str]]
) -> None:
    queries = run(count, events)
    written = sum((one.written for one in queries), Counter[int]())
    doubtful = sum((one.doubtful for one in queries), Counter[int]())
    assert set(written) == set(range(RECORDS))
    assert written - Counter(range(RECORDS)) <= doubtful


@pytest.mark.parametrize("event", ["killed before Spark's commit", "killed before it asks again"])
def test_records_repeated_after_a_kill_are_reported_with_their_offsets(
    event: str, caplog: pytest.LogCaptureFixture
) -> None:
    queries = run(2, [(0, event), (1, "trigger"), (1, "trigger"), (1, "stop in order")])
    written = sum((one.written for one in queries), Counter[int]())
    twice = sorted(written - Counter(range(RECORDS)))
    assert twice
    metrics = queries[0].metrics
    assert metrics.twice + metrics.omitted == len(twice)
    reported = [
        offset
        for first, last in re.findall(r"orders-0 (\d+) to (\d+)", caplog.text)
        for offset in range(int(first), int(last) + 1)
    ]
    assert reported == twice


@pytest.mark.parametrize("event", KILLS)
def test_after_a_kill_no_record_is_repeated_if_the_query_is_back_before_another_gets_it(
    event: str, tmp_path: Path
) -> None:
    queries = run(2, [(0, event), (0, "trigger"), (1, "trigger")])
    assert sum((one.written for one in queries), Counter[int]()) == Counter(range(RECORDS))


@pytest.mark.parametrize(
    "repeats",
    [("repeat", "killed idle"), ("repeat and be killed before Spark's commit",)],
    ids=["committed", "not committed"],
)
def test_a_record_left_out_of_a_batch_is_new_when_it_comes_back(repeats: tuple[str, ...]) -> None:
    """The other query died before it wrote the records: only the note shows that they are not done."""
    first_again = [(0, event) for event in repeats]
    queries = run(
        2,
        [(0, "killed before it wrote"), (1, "acquire"), *first_again, (1, "killed idle"), (0, "trigger")],
    )
    assert sum((one.written for one in queries), Counter[int]()) == Counter(range(RECORDS))


def test_a_record_that_was_delivered_for_the_last_time_stays_in_its_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker archives it when its lock ends: no other query can have it."""
    monkeypatch.setattr("tests.pipeline.share_source.scripted.DELIVERY_COUNT_MAX", 3)
    events = [(0, "acquire"), *[(0, "repeat and be killed before it wrote")] * 4]
    queries = run(2, events)
    assert sum((one.written for one in queries), Counter[int]()) == Counter(range(RECORDS))
