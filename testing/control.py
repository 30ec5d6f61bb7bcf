"""Sends the requests of a test to the controls of its broker."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import quote, urlsplit

REQUEST_SECONDS_MAX: Final = 120.0
"""The longest time until an answer, in real time; the longest advance takes some seconds."""

_OK: Final = 200
_NOT_FOUND: Final = 404


class ControlError(Exception):
    """The broker refuses a control, or cannot do it; the message has the reason."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
        """The status of HTTP: 400 for a wrong request, 404 for a missing topic or group, 409 or 503."""

    @property
    def is_missing(self) -> bool:
        """Whether there is no such topic, group or fault."""
        return self.status == _NOT_FOUND


class Control:
    """The controls of one broker. Any number of threads may use it."""

    def __init__(self, url: str, token: str) -> None:
        self._address = urlsplit(url).netloc
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Mapping[str, object]:
        """The answer of one control. `path` begins after the version; its parts are quoted (`quoted`).

        Raises ControlError, and OSError if the broker has gone.
        """
        data = None if body is None else json.dumps(body)
        with self._lock:
            connection = self._connection or http.client.HTTPConnection(
                self._address, timeout=REQUEST_SECONDS_MAX
            )
            self._connection = None
            connection.request(method, f"/testing/v1/{path}", data, self._headers)
            response = connection.getresponse()
            answer = cast("dict[str, object]", json.loads(response.read()))
            self._connection = connection
        if response.status != _OK:
            raise ControlError(str(answer.get("error")), response.status)
        return answer

    def close(self) -> None:
        """Close the connection; a later request opens another one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def quoted(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")
