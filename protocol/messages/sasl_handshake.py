"""SaslHandshake (key 17, KIP-43): the messages of version 1.

From this version on the mechanism's bytes travel in SaslAuthenticate (KIP-152); before, they had no frame.
"""

from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

__all__ = [
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
]
