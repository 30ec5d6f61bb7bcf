"""The file that marks a data directory as closed cleanly, with Kafka's name and content.

A start removes it. If it is missing, the last process died, or the power failed: the newest answers may be
lost, depending on `log.flush`.
"""

from typing import Final

from barnabas.storage.filesystem import FileSystem

CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

_CONTENT: Final = b'{"version":0,"brokerEpoch":-1}'


async def take_clean_shutdown(filesystem: FileSystem, directory: str) -> bool:
    """Remove the file; returns whether it was there. Raises OSError."""
    path = f"{directory}/{CLEAN_SHUTDOWN_FILE}"
    if not filesystem.exists(path):
        return False
    await filesystem.run(filesystem.remove, path)
    return True


async def note_clean_shutdown(filesystem: FileSystem, directory: str) -> None:
    """Write the file, after everything else is durable. Raises OSError."""
    await filesystem.replace_whole(f"{directory}/{CLEAN_SHUTDOWN_FILE}", _CONTENT)
