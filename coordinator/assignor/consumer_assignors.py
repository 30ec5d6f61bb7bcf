"""The assignors that a consumer group may choose from (`group.consumer.assignors`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from barnabas.coordinator.assignor import range as range_assignor
from barnabas.coordinator.assignor import uniform
from barnabas.coordinator.assignor.exclusive import ExclusiveAssignor

CONSUMER_ASSIGNORS: Final[Mapping[str, ExclusiveAssignor]] = MappingProxyType(
    {uniform.NAME: uniform.assign, range_assignor.NAME: range_assignor.assign}
)
