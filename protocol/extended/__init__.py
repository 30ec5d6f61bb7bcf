"""Kafka's messages with tagged fields that only Barnabas and its clients know, and the APIs that only they
have.

All of these tags have the number 10000 or a greater one. A client sends them only to a broker that lists the
feature of its extension, and a broker answers with them only if the request had them: docs/protocol.md has
the rules and all tags. Each module has one API and version, under the class names of kio.
"""

from typing import Final

INDIVIDUAL_COMMIT: Final = "individual.commit"
"""The feature of ranges of offsets and of partitions that members share."""

RELEASE_DELAY: Final = "release.delay"
"""The feature of delays that a share consumer asks for when it releases records."""
SHARE_TRANSACTIONS: Final = "share.transactional.acknowledgement"
"""The feature of acknowledgements of share groups that join a producer's transaction."""
