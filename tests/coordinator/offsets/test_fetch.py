"""The answers to fetches of committed offsets."""

from __future__ import annotations

import pytest

from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.coordinator.offsets.committed_offset import CommittedOffset
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, TOPIC, Bench


def test_a_fetch_returns_all_committed_offsets() -> None:
    bench = Bench()
    bench.start_commit(4, partitions=(0, 2), metadata="note").result()
    found = bench.offsets.fetch(GROUP, None)
    assert [(one.topic_name, one.partition) for one in found] == [(TOPIC, 0), (TOPIC, 2)]
    assert found[0].committed == CommittedOffset(4, 3, "note", bench.now_ms, log_offset=0)


def test_a_fetch_finds_nothing_of_unknown_groups() -> None:
    assert Bench().committed(group_id="absent") is None


def test_committed_offsets_outlive_a_restart() -> None:
    bench = Bench()
    bench.start_commit(4).result()
    bench.start_commit(6).result()
    bench.restart()
    assert bench.committed() == 6
    assert bench.state() is ClassicGroupState.EMPTY


def test_a_fetch_needs_the_groups_to_be_loaded() -> None:
    with pytest.raises(ApiError) as refused:
        Bench(loaded=False).committed()
    assert refused.value.code is ErrorCode.coordinator_load_in_progress
