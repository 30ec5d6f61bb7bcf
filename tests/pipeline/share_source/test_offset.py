"""The offset as JSON, there and back."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.ranges import AcquiredRange, OffsetRange
from barnabas.protocol.identity import TopicIdPartition

_PARTITIONS = st.builds(TopicIdPartition, st.uuids(), st.integers(0, 2**31 - 1))
_OFFSETS = st.integers(0, 2**63 - 1)
_RANGES = st.lists(st.builds(OffsetRange, _OFFSETS, _OFFSETS), min_size=1)
_ACQUIRED = st.lists(st.builds(AcquiredRange, _OFFSETS, _OFFSETS, st.integers(1, 100)), min_size=1)


@given(
    st.dictionaries(_PARTITIONS, _ACQUIRED, max_size=3),
    st.dictionaries(_PARTITIONS, _RANGES, max_size=3),
    st.dictionaries(_PARTITIONS, _RANGES, max_size=3),
    st.dictionaries(_PARTITIONS, st.integers(-1, 2**63 - 1), max_size=3),
)
def test_an_offset_survives_the_log(
    batch: dict[TopicIdPartition, list[AcquiredRange]],
    done: dict[TopicIdPartition, list[OffsetRange]],
    rejected: dict[TopicIdPartition, list[OffsetRange]],
    start_offsets: dict[TopicIdPartition, int],
) -> None:
    offset = ShareOffset(
        group_id="g",
        member_id="m",
        sequence=7,
        topics={partition.topic_id: "orders" for partition in batch},
        batch=batch,
        done=done,
        rejected=rejected,
        start_offsets=start_offsets,
        metrics=ShareMetrics(acquired=5, lag=3),
    )
    assert ShareOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_an_offset_reads_as_documented() -> None:
    orders = TopicIdPartition(UUID(int=1), 0)
    offset = ShareOffset(
        group_id="g",
        member_id="n2bR",
        sequence=1,
        topics={orders.topic_id: "orders"},
        batch={orders: [AcquiredRange(100, 149, 1), AcquiredRange(150, 159, 2)]},
        done={orders: [OffsetRange(90, 99)]},
        start_offsets={orders: 90},
    )
    topic_id = str(orders.topic_id)
    written = offset.to_json()
    assert written.pop("metrics")["acquired"] == 0
    assert written == {
        "version": 1,
        "sequence": 1,
        "group": "g",
        "member": "n2bR",
        "topics": {topic_id: "orders"},
        "batch": {topic_id: {"0": [[100, 149, 1], [150, 159, 2]]}},
        "done": {topic_id: {"0": [[90, 99]]}},
        "startOffsets": {topic_id: {"0": 90}},
    }


@pytest.mark.parametrize(
    ("given_offset", "reason"),
    [
        pytest.param({"orders": {"0": 5}}, "version None", id="another source's"),
        pytest.param({"version": 2}, "newer", id="a newer one's"),
        pytest.param({"version": 1, "sequence": 1, "group": "g"}, "member", id="without a member"),
        pytest.param(
            {"version": 1, "sequence": 1, "group": "g", "member": "m", "batch": {"x": {}}},
            None,
            id="an empty topic",
        ),
        pytest.param(
            {
                "version": 1,
                "sequence": 1,
                "group": "g",
                "member": "m",
                "batch": {str(UUID(int=1)): {"0": [[1, 2, 1]]}},
            },
            "KeyError",
            id="a topic without a name",
        ),
        pytest.param(
            {"version": 1, "sequence": 1, "group": "g", "member": "m", "done": 5}, "int", id="a number"
        ),
    ],
)
def test_a_malformed_offset_is_refused(given_offset: dict[str, Any], reason: str | None) -> None:
    if reason is None:
        assert ShareOffset.from_json(given_offset).batch == {}
        return
    with pytest.raises(PipelineError, match=reason):
        ShareOffset.from_json(given_offset)


def test_metrics_that_are_unknown_are_left_out() -> None:
    assert ShareMetrics.from_json({"acquired": 3, "of the future": 5}) == ShareMetrics(acquired=3)
