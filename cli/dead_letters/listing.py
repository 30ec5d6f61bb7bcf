"""`barnabas dlq list` and `show`: the letters of a topic, counted or one by one. Nothing is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

from barnabas.cli.dead_letters.content import Content, Missing
from barnabas.cli.dead_letters.letter import Letter, NotALetter
from barnabas.cli.dead_letters.letter_log import LetterLog
from barnabas.cli.dead_letters.redriven_offsets import RedrivenOffsets
from barnabas.cli.dead_letters.selection import Selection
from barnabas.cli.dead_letters.source_records import SourceRecords
from barnabas.cli.printing import Printer, Row, Value, bytes_entry

LETTERS_AT_ONCE: Final = 100
"""How many records are looked up together, and are in memory."""

_COLUMNS: Final = {
    "source_topic": "SOURCE TOPIC",
    "group": "GROUP",
    "reason": "REASON",
    "letter_count": "LETTERS",
    "redriven_count": "RE-DRIVEN",
    "oldest_ms": "OLDEST",
    "newest_ms": "NEWEST",
}


class _Kind(NamedTuple):
    """Letters that are counted together."""

    source_topic: str
    group: str
    reason: str


@dataclass(slots=True)
class _Counts:
    oldest_ms: int
    newest_ms: int
    letter_count: int = 0
    redriven_count: int = 0

    def add(self, letter: Letter, *, is_redriven: bool) -> None:
        self.letter_count += 1
        self.redriven_count += is_redriven
        self.oldest_ms = min(self.oldest_ms, letter.timestamp_ms)
        self.newest_ms = max(self.newest_ms, letter.timestamp_ms)


class Listing:
    """Reads the selected letters; `is_waiting` leaves out those that were re-driven."""

    def __init__(
        self,
        letters: LetterLog,
        redriven: RedrivenOffsets,
        sources: SourceRecords,
        selection: Selection,
        *,
        is_waiting: bool,
    ) -> None:
        self._letters = letters
        self._redriven = redriven
        self._sources = sources
        self._selection = selection
        self._is_waiting = is_waiting

    async def print_counts(self, printer: Printer) -> None:
        """Print the numbers of letters by source topic, group and reason."""
        kinds: dict[_Kind, _Counts] = {}
        not_letter_count = 0
        async with aclosing(self._lots()) as lots:
            async for lot in lots:
                letters = await self._selected(lot)
                not_letter_count += sum(isinstance(record, NotALetter) for record in lot)
                for letter in letters:
                    kind = _Kind(letter.source.topic, letter.group, letter.reason)
                    counts = kinds.setdefault(kind, _Counts(letter.timestamp_ms, letter.timestamp_ms))
                    counts.add(letter, is_redriven=self._redriven.has(letter.partition, letter.offset))
        rows = [_counts_row(kind, counts) for kind, counts in sorted(kinds.items())]
        printer.table(rows, _COLUMNS)
        if not_letter_count:
            printer.row({"type": "not_letters", "count": not_letter_count})

    async def print_letters(self, printer: Printer, letters_max: int | None) -> None:
        """Print each letter with its record, and each record that is no letter; at most `letters_max`."""
        printed_count = 0
        async with aclosing(self._lots()) as lots:
            async for lot in lots:
                for row in await self._rows(lot):
                    if printed_count == letters_max:
                        return
                    printer.row(row)
                    printed_count += 1

    async def _lots(self) -> AsyncGenerator[list[Letter | NotALetter]]:
        """The letters that pass the selection, without its key."""
        lot: list[Letter | NotALetter] = []
        skipped = self._redriven if self._is_waiting else None
        async with aclosing(self._letters.read(self._selection, skipped)) as found:
            async for record in found:
                if skipped is None or not skipped.has(record.partition, record.offset):
                    lot.append(record)
                if len(lot) == LETTERS_AT_ONCE:
                    yield lot
                    lot = []
        if lot:
            yield lot

    async def _selected(self, lot: Sequence[Letter | NotALetter]) -> list[Letter]:
        """The letters of a lot that pass the whole selection; records are read only if it has a key."""
        if self._selection.key is None:
            return [letter for letter in lot if isinstance(letter, Letter)]
        return [letter for letter, _ in await self._contents(lot)]

    async def _contents(self, lot: Sequence[Letter | NotALetter]) -> list[tuple[Letter, Content | Missing]]:
        """The letters of a lot that pass the whole selection, with their records."""
        contents = await self._sources.contents([letter for letter in lot if isinstance(letter, Letter)])
        if self._selection.key is None:
            return contents
        return [
            (letter, content)
            for letter, content in contents
            if isinstance(content, Content) and self._selection.matches_key(content.key)
        ]

    async def _rows(self, lot: Sequence[Letter | NotALetter]) -> list[Row]:
        topic = self._letters.topic.name
        contents = {
            (letter.partition, letter.offset): content for letter, content in await self._contents(lot)
        }
        rows: list[Row] = []
        for record in lot:
            content = contents.get((record.partition, record.offset))
            if isinstance(record, NotALetter):
                rows.append({"type": "not_a_letter", "topic": topic, **record._asdict()})
            elif content is not None:
                is_redriven = self._redriven.has(record.partition, record.offset)
                rows.append(_letter_row(topic, record, content, is_redriven=is_redriven))
        return rows


def _counts_row(kind: _Kind, counts: _Counts) -> Row:
    return {"type": "letters", **kind._asdict(), **asdict(counts)}


def _letter_row(topic: str, letter: Letter, content: Content | Missing, *, is_redriven: bool) -> Row:
    row: dict[str, Value] = {
        "type": "letter",
        "topic": topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp_ms": letter.timestamp_ms,
        "source_topic": letter.source.topic,
        "source_partition": letter.source.partition,
        "source_offset": letter.source.offset,
        "group": letter.group,
        "delivery_count": letter.delivery_count,
        "reason": letter.reason,
        "redriven": is_redriven,
    }
    if isinstance(content, Missing):
        return {**row, "record": "gone", "record_gone_because": content.reason}
    headers = [{"key": name, **bytes_entry("value", value)} for name, value in content.headers]
    return {
        **row,
        "record": content.origin.value,
        **bytes_entry("key", content.key),
        **bytes_entry("value", content.value),
        "headers": headers,
    }
