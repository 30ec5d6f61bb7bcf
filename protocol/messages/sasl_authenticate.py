"""SaslAuthenticate (key 36, KIP-152, KIP-368): the messages of version 2.

A session lifetime of 0, as version 0 has it, stands for a session that does not end.
"""

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse

__all__ = [
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
]
