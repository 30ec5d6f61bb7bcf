"""Share groups with dead letters: members reject records, or release them until the limit; at the end the
letters are compared with all their headers, keys and values.

The letters are written behind the acknowledgements, so they are looked at when all of them must be there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from barnabas.protocol.record_batch import Compression, iterate_headers
from barnabas.protocol.records import Record, encode_records, iterate_records
from tests.differential.areas.groups import group_is_ready
from tests.differential.areas.share_members import ACCEPT, GAP, REJECT, RELEASE, Member, ShareGroup
from tests.differential.stage import RECORDS_AT_MS, Stage

_ROUNDS = 8
_LETTER_PARTITIONS = 2
_LETTERS_WITHIN_MS = 2_000
_LOCK_MS = 1_000
_LETTERS = "dlq.letters"


@dataclass(frozen=True)
class _Letter:
    """A letter; the offset in its header is the record's number."""

    partition: int
    headers: list[tuple[str, str]]
    key: str
    value: str


class _Group(ShareGroup):
    """A group on one partition."""

    def __init__(self, stage: Stage, topics: dict[str, UUID]) -> None:
        super().__init__(stage, topics, 1)
        self.letter_topic_id = UUID(int=0)

    @property
    def numbering(self) -> Any:
        return self.stage.numbering(*self.partitions[0])

    async def prepare(self) -> None:
        enabled = {"errors__deadletterqueue__group__enable": "true"}
        self.letter_topic_id = await self.stage.create_topic(_LETTERS, _LETTER_PARTITIONS, **enabled)
        await self.set("errors.deadletterqueue.topic.name", self.stage.name(_LETTERS))
        if self.chance.random() < 0.6:
            await self.set("errors.deadletterqueue.copy.record.enable", "true")
        await self.set("share.delivery.count.limit", self.chance.choice(["2", "2", "3"]))
        await self.begin()

    async def produce(self) -> None:
        records = [
            Record(
                number,
                RECORDS_AT_MS,
                self.chance.choice([None, b"key"]),
                self.chance.choice([None, b"", b"value %d" % number]),
                self.chance.choice([(), (("header", b"one"), ("none", None))]),
            )
            for number in range(self.chance.choice([1, 3, 6]))
        ]
        codec = self.chance.choice([Compression.NONE, Compression.GZIP, Compression.LZ4])
        data = encode_records(records, compression=codec)
        answer = await self.stage.produce(*self.partitions[0], data)
        self.numbering.add(answer.base_offset, len(records))

    async def fetch(self, member: Member) -> None:
        first = member.session_epoch == 0
        asked: dict[str, Any] = {**self.fetch_fields(member, member.session_epoch), "max_wait": 0}
        topics = self.topics({}, first=first)
        response = await self.stage.ask(member.number, "share_fetch", 2, **asked, topics=topics)
        self.note_fetched(member, response)

    async def acknowledge(self, member: Member) -> None:
        """All records that the member holds, each with a type of its own."""
        numbers = sorted(
            {
                self.numbering.number(offset)
                for _, first, last in member.held
                for offset in range(first, last + 1)
            }
        )
        member.held.clear()
        batches: list[dict[str, Any]] = []
        for number in numbers:
            offset = self.numbering.offset(number)
            kind = self.chance.choice([ACCEPT, REJECT, REJECT, RELEASE, RELEASE, GAP])
            batches.append({"first_offset": offset, "last_offset": offset, "acknowledge_types": [kind]})
        if batches:
            await self.send_acknowledgements(member, {self.partitions[0]: batches})
            await self.stage.settle()

    async def look(self) -> None:
        """The offsets of the group, and all letters."""
        await self.stage.elapse(_LETTERS_WITHIN_MS)
        topics = [{"topic_name": self.topic_names[0], "partitions": [0]}]
        groups = [{"group_id": self.group_id, "topics": topics}]
        await self.stage.ask(0, "describe_share_group_offsets", groups=groups)
        for index in range(_LETTER_PARTITIONS):
            asked = {
                "partition": index,
                "fetch_offset": 0,
                "partition_max_bytes": 1 << 20,
                "current_leader_epoch": -1,
                "last_fetched_epoch": -1,
                "log_start_offset": -1,
            }
            await self.stage.ask(
                0,
                "fetch",
                replica_id=-1,
                max_wait=0,
                min_bytes=0,
                max_bytes=1 << 20,
                session_id=0,
                session_epoch=-1,
                topics=[{"topic_id": self.letter_topic_id, "partitions": [asked]}],
                forgotten_topics_data=[],
                shown=self._letters,
            )

    def _letters(self, response: Any) -> list[_Letter]:
        (answer,) = response.responses[0].partitions
        data = bytes(answer.records or b"")
        return [
            _Letter(
                answer.partition_index,
                [(name, self._header(name, value)) for name, value in record.headers],
                repr(record.key),
                repr(record.value),
            )
            for position, header in iterate_headers(data)
            if not header.is_control
            for record in iterate_records(data, position)
        ]

    def _header(self, name: str, value: bytes | None) -> str:
        text = "" if value is None else value.decode()
        return str(self.numbering.number(int(text))) if name.endswith(".offset") else text


async def play(stage: Stage) -> None:
    topic_id = await stage.create_topic("t")
    await stage.until(lambda: group_is_ready(stage))
    group = _Group(stage, {"t": topic_id})
    await group.prepare()
    for _ in range(_ROUNDS):
        member = stage.chance.choice(group.members)
        await group.produce()
        await group.fetch(member)
        await group.acknowledge(member)
        if stage.chance.random() < 0.2:
            await group.end_session(member)
    await group.set("share.record.lock.duration.ms", str(_LOCK_MS))
    for member in group.members:
        await group.fetch(member)
    await stage.elapse(_LOCK_MS + 300)
    await group.look()
