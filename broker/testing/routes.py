"""The paths of the controls for tests, and the status of each outcome. Independent of the HTTP server.

A body and an answer are JSON objects. An error is `{"error": message}`: 400 for a wrong request, 404 for a
missing path, topic, group or fault, 409 for a second advance, 500 for a defect of
the broker, 503 if the broker cannot do it at present.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple, cast
from urllib.parse import parse_qs, unquote, urlsplit

from barnabas.broker.testing.controls import Controls, Json
from barnabas.broker.testing.fields import Fields, Refused
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.logging import get_logger
from barnabas.runtime.stepping_loop import AlreadyAdvancing
from barnabas.storage.errors import StorageError

PREFIX: Final = "/testing/v1/"
OFFSET_MAX: Final = 2**63 - 1

_OK: Final = 200
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_BUG: Final = 500
_UNAVAILABLE: Final = 503
_MISSING: Final = frozenset(
    {ErrorCode.unknown_topic_or_partition, ErrorCode.group_id_not_found, ErrorCode.invalid_group_id}
)

log = get_logger("testing")


class Answer(NamedTuple):
    """The status and the body of an answer."""

    status: int
    body: Json


class Routes:
    """Answers the requests of one broker's tests."""

    def __init__(self, controls: Controls) -> None:
        self._controls = controls

    async def answer(self, method: str, target: str, body: bytes) -> Answer:
        """The answer to a request whose token is right. `target` is the path with its query."""
        url = urlsplit(target)
        steps = [unquote(step) for step in url.path.removeprefix(PREFIX).split("/")]
        try:
            found = await self._call(method, steps, _query(url.query), body)
        except Refused as error:
            return _refusal(_NOT_FOUND if error.is_missing else _BAD_REQUEST, str(error))
        except AlreadyAdvancing:
            return _refusal(_CONFLICT, "The clock is being advanced already. Wait for the answer to that.")
        except ApiError as error:
            return _refusal(_NOT_FOUND if error.code in _MISSING else _UNAVAILABLE, str(error))
        except (OSError, StorageError) as error:
            return _refusal(_UNAVAILABLE, str(error))
        except Exception as error:  # a bug of ours
            log.error("a control failed", method=method, path=url.path, exc_info=error)
            return _refusal(_BUG, f"A defect of the broker: {error!r}. Its log has the traceback.")
        if found is None:
            return _refusal(_NOT_FOUND, f"{method} {url.path} is no control. docs/testing.md lists them.")
        return Answer(_OK, found)

    async def _call(
        self, method: str, steps: list[str], query: Mapping[str, str], body: bytes
    ) -> Json | None:
        """The answer of the control; None if there is none."""
        controls = self._controls
        match method, steps:
            case "POST", ["clock", "advance"]:
                return await controls.advance(_fields(body))
            case "GET", ["clock"]:
                return controls.time()
            case "POST", ["reset"]:
                return await controls.reset()
            case "POST", ["topics"]:
                return await controls.create_topic(_fields(body))
            case "POST", ["groups", group, "settings"]:
                return await controls.configure_group(group, _fields(body))
            case "POST", ["faults"]:
                return controls.add_fault(_fields(body))
            case "GET", ["faults"]:
                return controls.list_faults()
            case "DELETE", ["faults"]:
                return controls.clear_faults()
            case "DELETE", ["faults", number]:
                return controls.remove_fault(_number("The fault", number))
            case "GET", ["records", topic]:
                partition = _number("partition", query.get("partition", "0"))
                return await controls.records(topic, partition, _number("offset", query.get("offset", "0")))
            case "GET", ["share-state", group]:
                return await controls.share_state(group)
            case _:
                return None


def _fields(body: bytes) -> Fields:
    try:
        given: object = json.loads(body or b"{}")
    except ValueError as error:
        raise Refused(f"The body is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise Refused("The body must be a JSON object.")
    return Fields(cast("dict[str, object]", given))


def _query(text: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()}


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > OFFSET_MAX:
        raise Refused(f"{name} is {text!r}; it must be a number from 0 to {OFFSET_MAX}.")
    return int(text)


def _refusal(status: int, message: str) -> Answer:
    return Answer(status, {"error": message})
