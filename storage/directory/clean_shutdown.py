"""The file that marks a data directory as closed cleanly, with Kafka's name and content.

A start removes it. If it is missing, the last process died, or the power failed: the newest answers may be
lost, depending on `log.flush`. A process that ends while such a loss still matters adds a field of ours. A
damaged file may have had that field, so it counts as missing.
"""

import json
from typing import Final

from barnabas.runtime.logging import get_logger
from barnabas.storage.filesystem import FileSystem

CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

_CONTENT: Final = b'{"version":0,"brokerEpoch":-1}'
_CONTENT_AFTER_LOSS: Final = b'{"version":0,"brokerEpoch":-1,"afterLoss":true}'

logger = get_logger("log_directory")


async def take_clean_shutdown(filesystem: FileSystem, directory: str) -> bool:
    """Remove the file; returns whether it was there, and no earlier loss matters. Raises OSError."""
    path = f"{directory}/{CLEAN_SHUTDOWN_FILE}"
    if not filesystem.exists(path):
        return False
    content = await filesystem.read_whole(path)
    await filesystem.run(filesystem.remove, path)
    if content == _CONTENT_AFTER_LOSS:
        return False
    is_whole = content == _CONTENT or _is_of_kafka(content)
    if not is_whole:
        logger.warning("the mark of a clean end is damaged, and counts as missing", path=path)
    return is_whole


def _is_of_kafka(content: bytes) -> bool:
    """Whether Apache Kafka may have written it: version 0, and the epoch of its broker."""
    try:
        fields: object = json.loads(content)
    except ValueError:
        return False
    match fields:
        case {"version": 0, "brokerEpoch": int(epoch)}:
            return fields == {"version": 0, "brokerEpoch": epoch}
        case _:
            return False


async def note_clean_shutdown(filesystem: FileSystem, directory: str, *, after_loss: bool) -> None:
    """Write the file, after everything else is durable. Raises OSError.

    `after_loss`: answers may have been lost before this process, and the next one has to know it.
    """
    content = _CONTENT_AFTER_LOSS if after_loss else _CONTENT
    await filesystem.replace_whole(f"{directory}/{CLEAN_SHUTDOWN_FILE}", content)
