"""The steps of operations on groups. They may write records of any type, because an operation may turn a
group of one protocol into one of the other.
"""

from typing import TypeAlias, TypeVar

from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.replay import steps

_T = TypeVar("_T")

Steps: TypeAlias = steps.Steps[AnyGroupRecord, _T]
