"""The operations of groups: those of `coordinator.runtime`, with the records of any group, since a group of
one protocol may be turned into one of another within an operation."""

from typing import TypeAlias, TypeVar

from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.replay import steps

_T = TypeVar("_T")

Steps: TypeAlias = steps.Steps[AnyGroupRecord, _T]
