"""The three commands, each over one dead letter topic: `list`, `show` and `redrive`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Final, NamedTuple

from barnabas.cli.dead_letters import journal
from barnabas.cli.dead_letters.letter import Letter
from barnabas.cli.dead_letters.letter_log import LetterLog
from barnabas.cli.dead_letters.listing import Listing
from barnabas.cli.dead_letters.redriven_offsets import RedrivenOffsets
from barnabas.cli.dead_letters.redriving import NotRedriven, Plan, Redriving, Tally, Writer
from barnabas.cli.dead_letters.selection import Selection
from barnabas.cli.dead_letters.session import CLIENT_ID, Session, connected
from barnabas.cli.dead_letters.source_records import SourceRecords
from barnabas.cli.dead_letters.stopping import stop_request
from barnabas.cli.dead_letters.throttle import Throttle
from barnabas.cli.printing import Printer, Row
from barnabas.cli.progress import Steps, progress
from barnabas.client.errors import BrokerUnavailableError
from barnabas.client.network.address import Address
from barnabas.client.network.security import Security
from barnabas.client.produce.producer import Producer
from barnabas.client.produce.transactions import Transactions

TRANSACTIONAL_ID_PREFIX: Final = "barnabas.redrive."

_COMPLETING: Final = frozenset({"PrepareCommit", "PrepareAbort"})


class Place(NamedTuple):
    """The dead letter topic of a command."""

    addresses: Sequence[Address]
    security: Security
    topic_name: str


class Ending(NamedTuple):
    """The end of a re-drive."""

    tally: Tally
    is_stopped: bool
    """Whether a signal ended it before the last letter."""


async def print_counts(place: Place, selection: Selection, printer: Printer, *, is_waiting: bool) -> None:
    """Raises `ConsumerError`."""
    async with _listing(place, selection, is_waiting=is_waiting) as listing:
        await listing.print_counts(printer)


async def print_letters(
    place: Place, selection: Selection, printer: Printer, letters_max: int | None, *, is_waiting: bool
) -> None:
    """Raises `ConsumerError`."""
    async with _listing(place, selection, is_waiting=is_waiting) as listing:
        await listing.print_letters(printer, letters_max)


@asynccontextmanager
async def _listing(place: Place, selection: Selection, *, is_waiting: bool) -> AsyncGenerator[Listing]:
    async with connected(place.addresses, place.security) as session:
        letters = await LetterLog.open(session, place.topic_name)
        redriven = await _redriven(session, letters)
        yield Listing(letters, redriven, SourceRecords(session), selection, is_waiting=is_waiting)


async def redrive(
    place: Place, plan: Plan, printer: Printer, records_per_second: float | None, *, dry_run: bool
) -> Ending:
    """Re-drive the letters until the end, or a signal.

    Prints the letters that could not be re-driven, and at the end the tally, also before an error. Raises
    `ConsumerError`.
    """
    tally = Tally()
    with stop_request() as stop:
        async with connected(place.addresses, place.security) as session:
            letters = await LetterLog.open(session, place.topic_name)
            try:
                with progress("looking at letters", letters.offset_count(plan.selection)) as steps:
                    bar = _Bar(steps, letters)

                    def report(not_redriven: NotRedriven) -> None:
                        steps.hide()
                        printer.row(_not_redriven_row(place.topic_name, not_redriven))

                    async with _writer(session, letters, place, dry_run=dry_run) as (redriven, writer):
                        redriving = Redriving(
                            plan, letters, redriven, SourceRecords(session), writer, report, tally
                        )
                        throttle = Throttle(None if dry_run else records_per_second)
                        await redriving.run(throttle, stop, bar.show)
            finally:
                printer.row(_tally_row(place.topic_name, tally, dry_run=dry_run, is_stopped=stop.is_asked))
    return Ending(tally, stop.is_asked)


class _Bar:
    """The letters that were looked at, as steps."""

    def __init__(self, steps: Steps, letters: LetterLog) -> None:
        self._steps = steps
        self._letters = letters
        self._shown_count = 0

    def show(self) -> None:
        """Draw the steps since the last call."""
        self._steps.advance(self._letters.looked_at_count - self._shown_count)
        self._shown_count = self._letters.looked_at_count


@asynccontextmanager
async def _writer(
    session: Session, letters: LetterLog, place: Place, *, dry_run: bool
) -> AsyncGenerator[tuple[RedrivenOffsets, Writer | None]]:
    """The letters that were re-driven before, and the writer; a dry run has none."""
    if dry_run:
        yield await _redriven(session, letters), None
        return
    topic = await journal.find_or_create_journal(session, journal.journal_name(place.topic_name))
    transactional_id = TRANSACTIONAL_ID_PREFIX + place.topic_name
    producer = Producer(
        [str(address) for address in place.addresses],
        client_id=CLIENT_ID,
        security=place.security,
        transactional_id=transactional_id,
    )
    async with producer:
        await producer.init_transactions()
        redriven = RedrivenOffsets(letters.topic.topic_id)
        await journal.load(session, topic, redriven)
        try:
            yield redriven, Writer(producer, topic, redriven, redriven.outdated(letters.start_offsets))
        except asyncio.CancelledError:  # after a signal, behind the last transaction
            await _wait_for_markers(session, transactional_id)
            raise
        await _wait_for_markers(session, transactional_id)


async def _wait_for_markers(session: Session, transactional_id: str) -> None:
    """Return when readers of committed records see the last transaction.

    Apache Kafka answers a commit before it has written the markers. Raises `ConsumerError`.
    """
    patience = session.retries.patience()
    with closing(Transactions(session.cluster, session.retries)) as transactions:
        while True:
            found = await transactions.describe(transactional_id)
            if found is None or found.state not in _COMPLETING:
                return
            await patience.pause(BrokerUnavailableError(f"{transactional_id} is still in {found.state}"))


async def _redriven(session: Session, letters: LetterLog) -> RedrivenOffsets:
    topic = await journal.find_journal(session, journal.journal_name(letters.topic.name))
    redriven = RedrivenOffsets(letters.topic.topic_id)
    await journal.load(session, topic, redriven)
    return redriven


def _not_redriven_row(topic: str, not_redriven: NotRedriven) -> Row:
    letter = not_redriven.letter
    source = letter.source if isinstance(letter, Letter) else None
    return {
        "type": "not_redriven",
        "topic": topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "source_topic": None if source is None else source.topic,
        "source_partition": None if source is None else source.partition,
        "source_offset": None if source is None else source.offset,
        "reason": not_redriven.reason,
    }


def _tally_row(topic: str, tally: Tally, *, dry_run: bool, is_stopped: bool) -> Row:
    return {
        "type": "would_redrive" if dry_run else "redriven",
        "topic": topic,
        "letters": tally.redriven,
        "from_source": tally.from_source,
        "from_copy": tally.from_copy,
        "record_gone": tally.missing,
        "without_target": tally.without_target,
        "not_a_letter": tally.not_letters,
        "stopped": is_stopped,
    }
