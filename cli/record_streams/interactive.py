"""`barnabas share` at a terminal: shows one record after the other, and a key decides about it.

The line below a record counts down the time of its lock. The lock is not renewed unless the user asks for it,
so that a record that is left alone goes back to the group, as in any consumer that hangs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Final, TextIO

from barnabas.cli.printing import Printer, as_text, as_time
from barnabas.cli.record_streams.key_presses import END_OF_INPUT, key_presses
from barnabas.cli.record_streams.sharing import (
    BytesConsumer,
    BytesRecord,
    Reading,
    Verdict,
    open_consumer,
    print_tally,
    settle,
)
from barnabas.cli.target import Target
from barnabas.client.errors import AcknowledgeError, UnsupportedBrokerError

_VERDICTS: Final[Mapping[str, Verdict]] = {
    "a": Verdict.ACCEPT,
    "r": Verdict.RELEASE,
    "j": Verdict.REJECT,
}
_RENEW: Final = "n"
_QUIT: Final = "q"
_PROMPT: Final = "[a]ccept  [r]elease  re[j]ect  re[n]ew  [q]uit"
_ERASE_LINE: Final = "\r\x1b[2K"
_DRAW_SECONDS: Final = 1.0
_MS_PER_SECOND: Final = 1000


async def decide(target: Target, printer: Printer, terminal: TextIO, reading: Reading) -> int:
    """Let the user decide about records until they quit; returns the number of acknowledged records.

    Raises `ConsumerError`.
    """
    settled: Counter[Verdict] = Counter()
    async with open_consumer(target, reading, max_records=1, renew_locks=False) as consumer:
        with key_presses(terminal) as keys:
            try:
                await _Session(consumer, printer, keys, settled).run()
            finally:
                printer.update(_ERASE_LINE)
                print_tally(printer, reading.group_id, settled)
    return settled.total()


class _Session:
    """The dialogue about one record after the other."""

    def __init__(
        self, consumer: BytesConsumer, printer: Printer, keys: asyncio.Queue[str], settled: Counter[Verdict]
    ) -> None:
        self._consumer = consumer
        self._printer = printer
        self._keys = keys
        self._settled = settled

    async def run(self) -> None:
        """Return when the user quits."""
        while True:
            record = await self._next()
            if record is None:
                return
            self._show(record)
            if not await self._decide(record):
                return

    async def _next(self) -> BytesRecord | None:
        """The next record; None if the user quits before it comes."""
        self._printer.update(f"{_ERASE_LINE}Waiting for a record; [q]uit")
        poll = asyncio.ensure_future(self._consumer.poll(max_records=1))
        try:
            while not poll.done():
                press = asyncio.ensure_future(self._keys.get())
                await asyncio.wait((poll, press), return_when=asyncio.FIRST_COMPLETED)
                if not press.done():
                    press.cancel()
                elif press.result() in {_QUIT, END_OF_INPUT}:
                    return None
            (record,) = poll.result()
            return record
        finally:
            poll.cancel()

    def _show(self, record: BytesRecord) -> None:
        self._printer.update(_ERASE_LINE)
        key = "" if record.key is None else f"  key {as_text(record.key)}"
        self._printer.text(
            f"{record.topic}-{record.partition}  offset {record.offset}  delivery {record.delivery_count}  "
            f"{as_time(record.timestamp_ms)}{key}"
        )
        for name, value in record.headers:
            self._printer.text(f"  {name}: {as_text(value)}")
        self._printer.text(f"  {'(null)' if record.value is None else as_text(record.value)}")

    async def _decide(self, record: BytesRecord) -> bool:
        """Whether the user continues. Returns, too, when the lock has ended."""
        while (left_ms := self._left_ms(record)) > 0 and record.is_held:
            self._printer.update(f"{_ERASE_LINE}{_PROMPT}   lock {left_ms / _MS_PER_SECOND:.0f} s ")
            try:
                async with asyncio.timeout(min(_DRAW_SECONDS, left_ms / _MS_PER_SECOND)):
                    key = await self._keys.get()
            except TimeoutError:
                continue
            if key in {_QUIT, END_OF_INPUT}:
                return False
            if key == _RENEW:
                await self._renew(record)
            elif key in _VERDICTS:
                await self._settle(record, _VERDICTS[key])
                return True
        self._say("The lock has ended; the group delivers the record again.")
        return True

    async def _renew(self, record: BytesRecord) -> None:
        try:
            await record.renew()
        except (AcknowledgeError, UnsupportedBrokerError) as error:
            self._say(f"not renewed: {error}")
        else:
            self._say("renewed")

    async def _settle(self, record: BytesRecord, verdict: Verdict) -> None:
        try:
            self._settled[verdict] += await settle(self._consumer, [record], verdict)
        except AcknowledgeError as error:
            self._say(f"not {verdict.value}: {error}")
        else:
            self._say(verdict.value)

    def _say(self, words: str) -> None:
        self._printer.update(_ERASE_LINE)
        self._printer.text(f"  -> {words}")

    def _left_ms(self, record: BytesRecord) -> float:
        return record.lock_deadline_ms - asyncio.get_running_loop().time() * _MS_PER_SECOND
