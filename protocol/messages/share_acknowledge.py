"""ShareAcknowledge requests (key 79, KIP-932, KIP-1222), as the broker's own decoder gives them.

Version 1 knows no renewal.
"""

from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody

__all__ = ["AckBatch", "AckPartition", "AckTopic", "ShareAcknowledgeBody"]
