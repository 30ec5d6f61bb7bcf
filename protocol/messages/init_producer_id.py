"""InitProducerId (key 22, KIP-98, KIP-360): the messages of version 5.

A producer id and epoch of -1 stand for a producer that has none yet, as do versions before 3.
"""

from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v5.response import InitProducerIdResponse

__all__ = [
    "InitProducerIdRequest",
    "InitProducerIdResponse",
]
