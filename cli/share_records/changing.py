"""Asks a broker to release, archive or dead-letter records of a share group."""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.cli.printing import Printer
from barnabas.cli.target import Target
from barnabas.client.inspect.share_group_admin import ShareGroupAdmin
from barnabas.protocol.counted import counted

_DONE: Final = {"release": "released", "archive": "archived"}


class Change(NamedTuple):
    """The records to change; both ends are inclusive."""

    action: str
    """A command: release, archive or dead-letter."""
    topic: str
    partition: int
    first_offset: int
    last_offset: int


async def change(target: Target, group_id: str, wanted: Change, printer: Printer) -> None:
    """Change the records, and print their number. Raises `ConsumerError`; then nothing was printed."""
    async with ShareGroupAdmin(target.bootstrap, group=group_id, **target.options) as admin:
        alter = {"release": admin.release, "archive": admin.archive, "dead-letter": admin.dead_letter}
        count = await alter[wanted.action](*wanted[1:])
    row = {"type": "changed", "group": group_id, **wanted._asdict(), "record_count": count}
    place = f"{wanted.topic}-{wanted.partition}"
    printer.result(row, f"{place}: {counted(count, 'record')} {_done(wanted.action, count)}")


def _done(action: str, count: int) -> str:
    if action in _DONE:
        return _DONE[action]
    return f"on {'its' if count == 1 else 'their'} way to dead letters"
