"""A client that repeats a tiny request and measures how long it waits."""

import threading
import time
from typing import Final

from tests.clients.raw_frames import RawConnection, api_versions_request

PAUSE_SECONDS: Final = 0.002
"""The pause between an answer and the next request."""
_TIMEOUT_SECONDS: Final = 60.0


class Probe:
    """Sends ApiVersions on its own connection and thread."""

    def __init__(self, address: str) -> None:
        self._connection = RawConnection(address, _TIMEOUT_SECONDS)
        self._request = api_versions_request()
        self._longest_seconds = 0.0
        self._round_ended = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._ask_repeatedly, daemon=True)

    def start(self) -> None:
        """Send requests until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Stop sending, and close the connection."""
        self._stopped = True
        self._thread.join()
        self._connection.socket.close()

    def begin(self) -> None:
        """Reset the longest wait."""
        self._await_round()
        self._longest_seconds = 0.0

    def longest_seconds(self) -> float:
        """The longest wait since `begin`, including a request that is outstanding now."""
        self._await_round()
        return self._longest_seconds

    def _await_round(self) -> None:
        self._round_ended.clear()
        if not self._round_ended.wait(_TIMEOUT_SECONDS):
            raise RuntimeError("the probe is not answered")

    def _ask_repeatedly(self) -> None:
        while not self._stopped:
            asked = time.perf_counter()
            self._connection.exchange(self._request)
            self._longest_seconds = max(self._longest_seconds, time.perf_counter() - asked)
            self._round_ended.set()
            time.sleep(PAUSE_SECONDS)
