"""The `meta.properties` file: the cluster and the node that own a data directory (KIP-78, KIP-866).

Version 1, as KRaft brokers write it, in the format of Java's properties. A comment at the end, which Apache
Kafka does not write and ignores, has the CRC-32C of all bytes before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from crc32c import crc32c

from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.format.partition_metadata import decode_id, encode_id

FILE_NAME = "meta.properties"
_VERSION = "1"
_CHECKSUM = b"# crc32c="
_CHARACTERS_TOLD_MAX = 40


class MetaProperties(NamedTuple):
    """The owner of a directory; the cluster's id is free text, usually an encoded UUID."""

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
    covered = "".join(f"{name}={value}\n" for name, value in lines.items()).encode()
    return covered + _checksum_line(covered)


def _checksum_line(covered: bytes) -> bytes:
    return b"%b%d\n" % (_CHECKSUM, crc32c(covered))


def decode_meta_properties(data: bytes, path: str = FILE_NAME) -> MetaProperties:
    """Decodes the file's content, written by this broker or Kafka.

    Raises InvalidDirectory, whose message names `path`, for other bytes.
    """
    covered, has_checksum, _ = data.partition(_CHECKSUM)
    if has_checksum and data != covered + _checksum_line(covered):
        raise _damaged(
            path, "its checksum does not match", "or, if you have changed it, remove its last line"
        )
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            name, _, value = line.partition("=")
            if value.strip():
                fields[name.strip()] = value.strip().replace("\\", "")
    if fields.get("version", _VERSION) != _VERSION:
        version = fields["version"][:_CHARACTERS_TOLD_MAX]
        raise InvalidDirectory(
            f"{path} has the version {version}, and this broker understands version {_VERSION}. Start the "
            "release that wrote it, or take another data directory."
        )
    missing = [name for name in ("version", "cluster.id", "node.id", "directory.id") if name not in fields]
    if missing:
        raise _damaged(path, f"it has no {', no '.join(missing)}")
    try:
        node_id = int(fields["node.id"])
    except ValueError:
        raise _damaged(path, f"its node.id {_shortened(fields['node.id'])} is not a number") from None
    try:
        return MetaProperties(fields["cluster.id"], node_id, decode_id(fields["directory.id"]))
    except ValueError:
        raise _damaged(path, f"its directory.id {_shortened(fields['directory.id'])} is not an id") from None


async def settle_meta_properties(
    filesystem: FileSystem, path: str, node_id: int, cluster_id: str | None, new_uuid: Callable[[], UUID]
) -> MetaProperties:
    """Reads the owner of the directory `path`, or records it in a new directory.

    Raises InvalidDirectory if another node or cluster owns it; OSError.
    """
    file = f"{path}/{FILE_NAME}"
    if not filesystem.exists(file):
        properties = MetaProperties(cluster_id or encode_id(new_uuid()), node_id, new_uuid())
        await filesystem.replace_whole(file, encode_meta_properties(properties))
        return properties
    data = await filesystem.read_whole(file)
    properties = decode_meta_properties(data, file)
    if properties.node_id != node_id:
        raise InvalidDirectory(
            f"{path} belongs to node {properties.node_id}, not {node_id}. Set node.id={properties.node_id}, "
            "or take another data directory."
        )
    if cluster_id is not None and properties.cluster_id != cluster_id:
        raise InvalidDirectory(
            f"{path} belongs to cluster {properties.cluster_id}, not {cluster_id}. Set cluster.id="
            f"{properties.cluster_id} or leave it out, or take another data directory."
        )
    if _CHECKSUM not in data:  # of Apache Kafka, or of an earlier version
        covered = data.rstrip() + b"\n"
        await filesystem.replace_whole(file, covered + _checksum_line(covered))
    return properties


def _damaged(path: str, reason: str, other_remedy: str = "") -> InvalidDirectory:
    remedies = "Restore the file from a backup" + (f", {other_remedy}" if other_remedy else "")
    return InvalidDirectory(f"{path} is damaged: {reason}. {remedies}.")


def _shortened(value: str) -> str:
    return repr(value[:_CHARACTERS_TOLD_MAX])
