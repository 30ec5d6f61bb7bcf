"""Opens a broker: recovers its data directory, and loads the metadata and the coordinators.

Everything is loaded before a client can connect. The logs of partitions are not: each is recovered when it is
first used.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
from barnabas.broker.node.broker import Broker
from barnabas.broker.node.initial_users import create_initial_users
from barnabas.broker.node.metadata_opening import open_metadata, settle_leftovers, warn_of_unused_passwords
from barnabas.broker.node.state_store_check import StateStoreCheck
from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import CallLater
from barnabas.runtime.logging import get_logger
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.filesystem import FileSystem, RealFileSystem

log = get_logger("broker")


async def open_broker(
    config: BrokerConfig,
    *,
    clock: Clock,
    filesystem: FileSystem | None = None,
    call_later: CallLater | None = None,
    new_id: Callable[[], UUID] = uuid4,
    open_segments_max: int | None = None,
) -> Broker:
    """A broker with its data directory recovered, ready to serve. Raises StorageError or OSError.

    The defaults are the machine's files, the running loop's timers, random ids, and the storage's bound.
    """
    storage = config.storage_config()
    if open_segments_max is not None:
        storage.open_files_max = open_segments_max
    log_directory = await LogDirectory.open(
        filesystem or RealFileSystem(),
        config.log_directory,
        node_id=config.node_id,
        cluster_id=config.cluster_id,
        storage=storage,
        wall_ms=clock.wall_ms,
        new_uuid=new_id,
    )
    try:
        return await _open_over(config, clock, log_directory, call_later, new_id)
    except BaseException:
        await log_directory.close(after_loss=not log_directory.was_closed_cleanly)
        raise


async def _open_over(
    config: BrokerConfig,
    clock: Clock,
    log_directory: LogDirectory,
    call_later: CallLater | None,
    new_id: Callable[[], UUID],
) -> Broker:
    image = MetadataImage()
    effective = EffectiveConfig(config, image)
    metadata = await open_metadata(
        config, effective, image, clock=clock, log_directory=log_directory, new_id=new_id
    )
    await settle_leftovers(log_directory, image)
    broker = Broker(config, clock, log_directory, metadata, effective, call_later, new_id)
    await broker.offsets_topic.load()
    await broker.transactions.load()
    await _load_share_state(broker)
    for warning in broker.group_configs.capped():
        log.warning(warning)
    await create_initial_users(config, metadata)
    if not any(listener.protocol.uses_sasl for listener in config.listeners):
        warn_of_unused_passwords(image)
    log_directory.start()
    return broker


async def _load_share_state(broker: Broker) -> None:
    """Loads the store in use, and checks that the other one has no state."""
    check = StateStoreCheck(
        broker.log_directory.path, broker.metadata.image, broker.logs, broker.groups.share
    )
    if broker.share_state is None:
        await check.check_topic(ShareStateTopic(broker.coordinator_parts()))
        return
    await broker.share_state.load()
    await check.check_logs(broker.share_state)
    broker.share_state.begin_upkeep()
