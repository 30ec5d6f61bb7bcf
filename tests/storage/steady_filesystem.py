"""The real file system for tests that look at a log right after an append."""

from barnabas.storage.filesystem import RealFileSystem


class SteadyFileSystem(RealFileSystem):
    """Its clock stands still: no write counts as slow, so none is handed to a thread."""

    @staticmethod
    def monotonic_ns() -> int:
        return 0
