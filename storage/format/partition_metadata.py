"""The `partition.metadata` file (KIP-516): the id of the topic of the log in a directory."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

from barnabas.storage.format.checkpoint_file import CheckpointCorrupt

FILE_NAME = "partition.metadata"
_ENCODED_ID_CHARACTERS = 22


def encode_id(uuid: UUID) -> str:
    """An id in Kafka's text form: base64 for URLs, unpadded."""
    return urlsafe_b64encode(uuid.bytes).decode()[:_ENCODED_ID_CHARACTERS]


def decode_id(text: str) -> UUID:
    """The id in Kafka's text form; raises ValueError for other text."""
    return UUID(bytes=urlsafe_b64decode(f"{text}=="))


def encode_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {encode_id(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> UUID:
    """The topic's id; raises CheckpointCorrupt for other bytes."""
    try:
        fields = dict(line.split(":", 1) for line in data.decode().splitlines())
        if int(fields["version"]) < 0:
            raise CheckpointCorrupt(f"The version is {fields['version']!r}.")
        return decode_id(fields["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise CheckpointCorrupt(f"{data!r} doesn't name a topic id.") from error
