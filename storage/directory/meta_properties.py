"""The `meta.properties` file: which node of which cluster a data directory belongs to (KIP-78, KIP-866).

Version 1, as KRaft brokers write it, in the format of Java's properties.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.format.partition_metadata import decode_id, encode_id

FILE_NAME = "meta.properties"
_VERSION = "1"


class MetaProperties(NamedTuple):
    """Whose directory it is; the cluster's id is free text, usually an encoded UUID."""

    cluster_id: str
    node_id: int
    directory_id: UUID


def encode_meta_properties(properties: MetaProperties) -> bytes:
    """The file's content."""
    lines = {
        "cluster.id": properties.cluster_id,
        "directory.id": encode_id(properties.directory_id),
        "node.id": str(properties.node_id),
        "version": _VERSION,
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items()).encode()


def decode_meta_properties(data: bytes) -> MetaProperties:
    """What `encode_meta_properties`, or Kafka, encoded; InvalidDirectory for anything else."""
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            name, _, value = line.partition("=")
            fields[name.strip()] = value.strip().replace("\\", "")
    try:
        if fields["version"] != _VERSION:
            raise InvalidDirectory(f"{FILE_NAME} has the version {fields['version']}, not {_VERSION}.")
        return MetaProperties(fields["cluster.id"], int(fields["node.id"]), decode_id(fields["directory.id"]))
    except (KeyError, ValueError) as error:
        raise InvalidDirectory(f"{FILE_NAME} cannot be read: {error!r}.") from error
