"""The option `stateDir`: notes of one query that cannot be in Spark's offset log.

    batch.json    the last batch that was repeated or acknowledged
    stop.json     another process asks the query to stop in order

Spark writes an offset before its batch runs and never changes it. Two facts become known later: the records
of a repeated batch that other members have got, and the acknowledgement of a batch. Both must survive the
next crash. A directory belongs to one query, like its checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.storage import Directory

OPTION: Final = "stateDir"

_VERSION: Final = 1
_BATCH: Final = "batch.json"
_STOP: Final = "stop.json"


class StateFiles:
    """The files under one `stateDir`. Every call may raise `PipelineError`, which names the option."""

    def __init__(self, uri: str) -> None:
        self._directory = Directory(OPTION, uri)

    # The last batch.

    def write_repeated(self, batch: ShareOffset, omitted: str) -> None:
        """Notes the records of a repeated batch, with their newest delivery counts, and a description of
        those that were left out."""
        self._directory.write(_BATCH, _encoded(batch=batch.to_json(), omitted=omitted))

    def write_settled(self, offset: ShareOffset) -> None:
        """Notes that the broker has confirmed the acknowledgements of this batch."""
        self._directory.write(_BATCH, _encoded(member=offset.member_id, settled=offset.sequence))

    def repeated(self, offset: ShareOffset) -> ShareOffset | None:
        """The note about this batch, if it was repeated before."""
        members = self._read(_BATCH)
        last = ShareOffset.from_json(members["batch"]) if "batch" in members else None
        is_same = last is not None and (last.member_id, last.sequence) == (offset.member_id, offset.sequence)
        return last if is_same else None

    def last_omitted(self) -> str:
        """The partitions and offsets that the last repeated batch left out; empty if there are none."""
        return str(self._read(_BATCH).get("omitted", ""))

    def is_settled(self, offset: ShareOffset) -> bool:
        """Whether the acknowledgements of this batch are noted as confirmed."""
        members = self._read(_BATCH)
        return (members.get("member"), members.get("settled")) == (offset.member_id, offset.sequence)

    # The wish to stop.

    def ask_to_stop(self) -> None:
        """Asks the query to acquire nothing more."""
        self._directory.write(_STOP, _encoded())

    def note_committed(self, sequences: Mapping[str, int]) -> None:
        """By member, the sequence of the last batch that is in Spark's commit log."""
        self._directory.write(_STOP, _encoded(committed=dict(sequences)))

    def is_asked_to_stop(self) -> bool:
        return self._directory.exists(_STOP)

    def is_committed(self, offset: ShareOffset) -> bool:
        """Whether it is noted that Spark has committed this batch."""
        committed = self._read(_STOP).get("committed", {})
        return cast("Mapping[str, int]", committed).get(offset.member_id) == offset.sequence

    def forget_stop_request(self) -> None:
        """Removes a wish that was for an earlier run of the query."""
        self._directory.remove(_STOP)

    def _read(self, name: str) -> dict[str, Any]:
        """The content of a file; empty if there is no such file."""
        if not self._directory.exists(name):
            return {}
        try:
            members = json.loads(self._directory.read(name))
            if members["version"] != _VERSION:
                raise ValueError(f"version {members['version']}")
        except (ValueError, KeyError, TypeError) as error:
            where = self._directory.path_of(name)
            raise PipelineError(f"{OPTION}: {where} holds no notes of kafka-share: {error!r}.") from error
        return cast("dict[str, Any]", members)


def _encoded(**members: object) -> bytes:
    return json.dumps({"version": _VERSION, **members}).encode()
