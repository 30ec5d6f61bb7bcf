"""The pairs of values that a rule of `rules.py` allows: Kafka's first, then Barnabas's."""

from __future__ import annotations

from itertools import dropwhile

from barnabas.protocol.record_batch import CONTROL_FLAG
from tests.differential.plain import Plain, is_mapping

_LEAST_THROTTLED_COUNT = 3
"""Kafka bounds what is delivered with a record that was delivered twice before, and more often with a higher
limit.
"""


def are_times(kafka: Plain, ours: Plain) -> bool:
    return isinstance(kafka, int) and isinstance(ours, int) and kafka > 0 and ours > 0


def is_merged(kafka: Plain, ours: Plain) -> bool:
    """Whether they are the same ranges after neighbours with equal counts are joined."""
    return _merged(kafka) == _merged(ours)


def is_throttled(kafka: Plain, ours: Plain) -> bool:
    """Whether Kafka continues after Barnabas's records with records that have failed more often."""
    both, expected = _merged(ours), _merged(kafka)
    beyond = expected[len(both) :]
    return bool(both and beyond) and expected[: len(both)] == both and beyond[0][2] > both[-1][2]


def is_alone(kafka: Plain, ours: Plain) -> bool:
    """Whether Barnabas lacks only ranges of one offset each: a marker is a batch of one."""
    offsets = _offsets(ours)
    lacking = [one for one in kafka if offsets.isdisjoint(_offsets([one]))]
    both = [one for one in kafka if one not in lacking]
    if not lacking or any(len(_offsets([one])) > 1 for one in lacking):
        return False
    return is_merged(both, ours) or _is_throttled_before(kafka, ours)


def _is_throttled_before(kafka: Plain, ours: Plain) -> bool:
    """Whether Kafka has only a range that is near its delivery limit, and Barnabas the ranges behind it."""
    return (
        len(kafka) == 1
        and kafka[0]["delivery_count"] >= _LEAST_THROTTLED_COUNT
        and kafka[0]["last_offset"] < min(_offsets(ours))
    )


def are_alone(kafka: Plain, ours: Plain) -> bool:
    """Whether Kafka has acquired only markers of a topic or partition that Barnabas does not name."""
    if is_mapping(ours):
        return False
    return all(
        is_alone(one["acquired_records"], [])
        and _offsets(one["acquired_records"]) <= _markers(one["records"])
        for one in kafka.get("partitions", [kafka])
    )


def _markers(batches: list[Plain]) -> set[int]:
    return {batch["base_offset"] for batch in batches if _is_marker(batch)}


def is_behind_markers(kafka: Plain, ours: Plain) -> bool:
    """Whether Kafka's batches begin with markers, and Barnabas's with the batch behind these.

    Kafka may have only a part of that batch.
    """
    whole = [batch for batch in kafka if "cut_after_bytes" not in batch]
    behind = list(dropwhile(_is_marker, whole))
    if not ours or len(behind) == len(whole):
        return False
    first_offset: int = ours[0]["base_offset"]
    marker: int = whole[0]["base_offset"]
    expected: int = behind[0]["base_offset"] if behind else first_offset
    return marker < first_offset == expected


def _is_marker(batch: Plain) -> bool:
    is_control: bool = batch.get("attributes", 0) & CONTROL_FLAG != 0
    return is_control


def _offsets(acquired: list[Plain]) -> set[int]:
    return {offset for one in acquired for offset in range(one["first_offset"], one["last_offset"] + 1)}


def _merged(acquired: list[Plain]) -> list[list[int]]:
    merged: list[list[int]] = []
    for one in acquired:
        first, last, count = one["first_offset"], one["last_offset"], one["delivery_count"]
        if merged and merged[-1][1] + 1 == first and merged[-1][2] == count:
            merged[-1][1] = last
        else:
            merged.append([first, last, count])
    return merged


def are_names(kafka: Plain, ours: Plain) -> bool:
    return isinstance(kafka, str) and isinstance(ours, str) and kafka != "" and ours != ""


def is_resolved(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = kafka == -1 and ours >= 0
    return is_so


def is_negative(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = kafka < 0 and ours == 0
    return is_so


def is_counted(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = kafka > ours >= 0
    return is_so


def is_earlier(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = 0 <= kafka < ours
    return is_so


def is_cut_off(kafka: Plain, ours: Plain) -> bool:
    """Whether Kafka's additional bytes are a part of one more batch."""
    if len(kafka) != len(ours) + 1 or "cut_after_bytes" not in kafka[-1]:
        return False
    return list(map(_place, kafka[:-1])) == list(map(_place, ours))


def is_passed_over(kafka: Plain, ours: Plain) -> bool:
    """Whether Kafka's additional batches lie between the batches that both have."""
    if len(kafka) <= len(ours):
        return False
    places, rest = list(map(_place, ours)), iter(map(_place, kafka))
    is_within = all(one in rest for one in places)
    return is_within and bool(places) and places[0] == _place(kafka[0]) and places[-1] == _place(kafka[-1])


def _place(batch: Plain) -> list[Plain]:
    """The identity of a batch, independent of the time of its marker."""
    return [batch.get(name) for name in ("base_offset", "last_offset_delta", "attributes", "producer_id")]


def is_unwritten(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = kafka == "Dead" and ours in ("PreparingRebalance", "CompletingRebalance")
    return is_so


def is_left_out(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = kafka >= 0 and ours == -1
    return is_so


def is_of_rest(kafka: Plain, ours: Plain) -> bool:
    """Whether Kafka has found a record; Barnabas's may be another one, or none."""
    is_so: bool = kafka >= 0 and ours >= -1
    return is_so


def is_abortable(kafka: Plain, ours: Plain) -> bool:
    return (kafka, ours) == ("transaction_abortable", "invalid_txn_state")


def is_unknown_member(kafka: Plain, ours: Plain) -> bool:
    return (kafka, ours) == ("unknown_server_error", "unknown_member_id")
