"""The settings of priorities, and the limits that a group has by them."""

from __future__ import annotations

import pytest

from barnabas.broker.config import tables
from barnabas.broker.config.errors import InvalidValueError
from barnabas.broker.config.priority_settings import (
    HEADER_NAME,
    HEADER_NAME_LENGTH_MAX,
    OVERTAKEN_MAX,
    WINDOW_RECORDS,
)
from barnabas.coordinator.metadata.image import ResourceType
from barnabas.share.partition.limits import NO_PRIORITIES, PriorityLimits
from tests.broker.config.config_fakes import configured


def test_a_group_has_no_priorities_without_the_name_of_a_header() -> None:
    parts = configured()
    assert parts.groups.limits_of("g").priority == NO_PRIORITIES
    parts.give(ResourceType.GROUP, "g", share__priority__window__records="7")
    assert parts.groups.limits_of("g").priority == PriorityLimits("", 7, 1_000)


def test_a_group_has_priorities_with_the_name_of_a_header() -> None:
    parts = configured()
    parts.give(
        ResourceType.GROUP,
        "g",
        share__priority__header="urgency",
        share__priority__window__records="7",
        share__priority__overtaken__max="8",
    )
    assert parts.groups.limits_of("g").priority == PriorityLimits("urgency", 7, 8)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (HEADER_NAME, "h" * (HEADER_NAME_LENGTH_MAX + 1), "Value must have at most 249 characters"),
        (WINDOW_RECORDS, "0", "Value must be at least 1"),
        (WINDOW_RECORDS, "10001", "Value must be no more than 10000"),
        (OVERTAKEN_MAX, "0", "Value must be at least 1"),
        (OVERTAKEN_MAX, "1000001", "Value must be no more than 1000000"),
    ],
)
def test_a_value_outside_of_its_bounds_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        tables.GROUP[name].parse(value)
