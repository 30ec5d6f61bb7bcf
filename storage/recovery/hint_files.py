"""Files of a log that are only hints: without a good one, an opening reads more."""

from __future__ import annotations

from barnabas.runtime.logging import get_logger
from barnabas.storage.filesystem import replace_undurably
from barnabas.storage.state.log_state import LogState

logger = get_logger("recovery")


async def write_hint(log: LogState, name: str, data: bytes, failure: str) -> bool:
    """Replaces a file atomically but not durably: recovery rejects one that a loss of power has damaged.

    Returns whether it was written. An error is only logged as `failure`, on a full disk not even that.
    """
    try:
        await log.filesystem.run(replace_undurably, log.filesystem, f"{log.directory}/{name}", data)
    except OSError as error:
        if not log.shared.full_disk.met(error):
            logger.warning(failure, log=log.topic_partition.directory_name, reason=str(error))
        return False
    return True
