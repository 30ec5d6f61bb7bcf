"""FindCoordinator (key 10, KIP-699): the messages of versions 3 and 6.

`Single` is versions 0 to 3, one key and one coordinator; `Batch` is 4 to 6, several. Version 0 asks for
groups only.
"""

from kio.schema.find_coordinator.v3.request import FindCoordinatorRequest as FindCoordinatorRequestSingle
from kio.schema.find_coordinator.v3.response import FindCoordinatorResponse as FindCoordinatorResponseSingle
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest as FindCoordinatorRequestBatch
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse as FindCoordinatorResponseBatch

__all__ = [
    "FindCoordinatorRequestBatch",
    "FindCoordinatorRequestSingle",
    "FindCoordinatorResponseBatch",
    "FindCoordinatorResponseSingle",
]
