"""ShareFetch requests (key 78, KIP-932, KIP-1206, KIP-1222), as the broker's own decoder gives them.

Version 1 knows neither acquire mode nor renewal: mode 0, no renewal.
"""

from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.share_fetch import ShareFetchBody

__all__ = ["AckBatch", "AckPartition", "AckTopic", "ShareFetchBody"]
