"""Opens the metadata of a broker: log, snapshots and controller (KIP-500).

All other parts of a broker depend on the metadata. The settings of the metadata log come from the broker's;
they can be read with DescribeConfigs, but not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.rules import SettingRules
from barnabas.coordinator.metadata.controller import Controller, Node
from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.coordinator.metadata.metadata_log import MetadataLog
from barnabas.coordinator.metadata.scram_credentials import count_users
from barnabas.coordinator.metadata.snapshot_files import SnapshotFiles
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from barnabas.protocol.metadata_records import BrokerEndpoint
from barnabas.protocol.varint import NewerVersion, RecordFormatError
from barnabas.runtime.clock import Clock
from barnabas.runtime.logging import get_logger
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.log.partition_log import PartitionLog

log = get_logger("broker")


async def open_metadata(
    config: BrokerConfig,
    effective: EffectiveConfig,
    image: MetadataImage,
    *,
    clock: Clock,
    log_directory: LogDirectory,
    new_id: Callable[[], UUID],
) -> Controller:
    """The started controller; `image` has the metadata on disk, and the node is registered.

    Raises InvalidDirectory if records are missing or damaged; StorageError, OSError.
    """
    log_config = config.metadata_log_config()
    store = await log_directory.log(METADATA_TOPIC, 0, METADATA_TOPIC_ID, log_config, leader_epoch=0)

    async def start_over(offset: int) -> PartitionLog:
        return await log_directory.start_over(METADATA_TOPIC, 0, METADATA_TOPIC_ID, log_config, offset=offset)

    log = MetadataLog(
        store,
        SnapshotFiles(log_directory.filesystem, store.directory),
        config.snapshot_settings(),
        clock=clock,
        start_over=start_over,
    )
    controller = Controller(
        Node(config.node_id, log_directory.directory_id, _endpoints(config)),
        log,
        SettingRules(config, effective),
        image=image,
        default_partition_count=config.integer("num.partitions"),
        new_id=new_id,
        wall_ms=clock.wall_ms,
    )
    try:
        await controller.start()
    except NewerVersion as error:
        raise InvalidDirectory(
            f"{store.directory} was written by a newer version of the broker. {error} Start that version."
        ) from error
    except RecordFormatError as error:
        raise InvalidDirectory(
            f"{store.directory} is damaged: {error} Restore it from a copy of the data directory."
        ) from error
    return controller


def _endpoints(config: BrokerConfig) -> tuple[BrokerEndpoint, ...]:
    return tuple(
        BrokerEndpoint(
            name=listener.name,
            host=listener.advertised_host,
            port=listener.advertised_port,
            security_protocol=0,
        )
        for listener in config.listeners
    )


def warn_of_unused_passwords(image: MetadataImage) -> None:
    users = count_users(image.scram_credentials)
    if users:
        log.warning("SCRAM users are stored, but no client is asked for a password", users=users)


async def settle_leftovers(log_directory: LogDirectory, image: MetadataImage) -> None:
    """Delete remaining logs of deleted topics, and set aside directories of no topic. Raises OSError."""
    topics = {METADATA_TOPIC, *image.topics_by_name}
    deleted, strays = await log_directory.settle_leftovers(topics, image.deleted_topics)
    for topic_id in list(image.deleted_topics):
        image.logs_removed(topic_id)
    if deleted:
        log.info("logs of deleted topics removed", count=len(deleted), first=deleted[0].directory_name)
    if strays:
        log.warning("directories of no topic set aside", count=len(strays), first=strays[0].directory_name)
