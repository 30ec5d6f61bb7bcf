"""The controller: decides about the metadata, appends the records, replays them, and answers.

KIP-500's controller of a cluster of one node. A decision is made against the image, which holds everything in
the log. So decisions that come while an append is in flight wait for it; most appends end at once, and then
no decision waits. Replies are sent after the replay and after the listeners were called, in the order of the
log.

Registration: each start raises the node's epoch by one and registers the node again, before any other request
is served. That epoch is the leader epoch of its partitions and of the metadata log's own batches.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from barnabas.coordinator.metadata.client_quotas import QuotaAlteration, decide_alter_client_quotas
from barnabas.coordinator.metadata.config_decisions import (
    ConfigRules,
    ResourceChange,
    ResourceReplacement,
    decide_alter_configs,
    decide_replace_configs,
)
from barnabas.coordinator.metadata.features import (
    SUPPORTED_FEATURES,
    FeatureUpdate,
    decide_update_features,
    newly_supported,
)
from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage
from barnabas.coordinator.metadata.metadata_log import MetadataLog
from barnabas.coordinator.metadata.reset import decide_reset
from barnabas.coordinator.metadata.scram_credentials import Deletion, Upsertion, decide_alter_credentials
from barnabas.coordinator.metadata.topic_decisions import (
    Charge,
    MorePartitions,
    NewTopic,
    TopicCreation,
    TopicPlacement,
    decide_create_partitions,
    decide_create_topics,
    decide_delete_topics,
    free_of_charge,
    too_many_partitions,
)
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    MetadataRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)
from barnabas.runtime.completion import Completion
from barnabas.storage.errors import AppendQueueFull, DiskFull, StorageError
from barnabas.storage.log.appended import Append, Appended

PRODUCER_IDS_PER_BLOCK = 1000
QUEUED_DECISIONS_MAX = 1000
"""Decisions that may wait for an append; one more is refused (THROTTLING_QUOTA_EXCEEDED, which clients
retry).
"""

_T = TypeVar("_T")


class Node(NamedTuple):
    """The node of this metadata: its id, its data directory's id, and its address for clients."""

    node_id: int
    directory_id: UUID
    endpoints: tuple[BrokerEndpoint, ...]


class Controller:
    """Decides about topics, settings and producer ids.

    `listeners` are called with the changes of a decision, once they are in the image. Every method that
    changes the metadata returns a `Completion`. It fails with an `ApiError` only if no record could be
    written, or if the whole request is refused.

    `on_failed` is called, once, with the StorageError of a failed append. It is unknown how much of the
    append the next start will find, so the image may differ from the log, and the node should stop.
    """

    def __init__(
        self,
        node: Node,
        log: MetadataLog,
        rules: ConfigRules,
        *,
        image: MetadataImage,
        default_partition_count: int,
        new_id: Callable[[], UUID],
        wall_ms: Callable[[], int],
    ) -> None:
        """`image` is empty until `start`; `new_id` returns random version 4 ids; `default_partition_count` is
        num.partitions.
        """
        self.image = image
        self.listeners: list[Callable[[MetadataChanges], None]] = []
        self.on_failed: Callable[[Exception], None] | None = None
        self._node = node
        self._log = log
        self._rules = rules
        self._default_partition_count = default_partition_count
        self._new_id = new_id
        self._wall_ms = wall_ms
        self._waiting: deque[Callable[[], None]] = deque()
        self._appending = False
        self._deciding = False
        self._failed = False

    async def start(self) -> None:
        """Load the metadata from the disk and register the node; raises `StorageError` if either fails."""
        await self._log.load(self.image)
        node_epoch = self.node_epoch + 1
        self._log.become_leader(node_epoch)
        try:
            await self._submit(lambda: (self._registration(node_epoch), None))
        except ApiError as error:
            raise StorageError(f"The node could not be registered: {error}") from error

    async def close(self) -> None:
        """Write a last snapshot. No decision may be waiting any more."""
        await self._log.close()

    @property
    def log(self) -> MetadataLog:
        """The log behind the image, for its followers."""
        return self._log

    @property
    def node_epoch(self) -> int:
        """The number of earlier starts of this node, which is the leader epoch of its partitions."""
        return self.image.broker_epoch(self._node.node_id)

    @property
    def last_offset(self) -> int:
        """The offset of the last record of the metadata, which ApiVersions reports as its epoch of
        features.
        """
        return self._log.end_offset - 1

    # --- decisions --------------------------------------------------------------------------------

    def create_topics(
        self,
        new_topics: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        charge: Charge = free_of_charge,
    ) -> Completion[list[TopicCreation]]:
        """Create topics, each with another name. With `validate_only` the answer is the same, and no topic is
        created.
        """
        return self._submit(
            lambda: decide_create_topics(
                self.image,
                new_topics,
                self._placement(),
                self._rules,
                self._new_id,
                charge=charge,
            ),
            validate_only=validate_only,
        )

    def check_partition_count(self, new_topics: Sequence[NewTopic]) -> None:
        """For a request that is carried out in parts: POLICY_VIOLATION if it is too large as a whole."""
        too_many = too_many_partitions(new_topics, self._default_partition_count)
        if too_many is not None:
            raise without_frames(too_many)

    def delete_topics(
        self, topic_ids: Sequence[UUID], *, charge: Charge = free_of_charge
    ) -> Completion[list[ApiError | None]]:
        """Delete topics, each given once; their records go with them."""
        return self._submit(lambda: decide_delete_topics(self.image, topic_ids, charge))

    def create_partitions(
        self,
        requests: Sequence[MorePartitions],
        *,
        validate_only: bool = False,
        charge: Charge = free_of_charge,
    ) -> Completion[list[ApiError | None]]:
        """Add partitions to topics, each given once."""
        return self._submit(
            lambda: decide_create_partitions(self.image, requests, self._placement(), charge),
            validate_only=validate_only,
        )

    def alter_configs(
        self, requests: Sequence[ResourceChange], *, validate_only: bool = False
    ) -> Completion[list[ApiError | None]]:
        """Change settings of resources, each given once."""
        return self._submit(
            lambda: decide_alter_configs(self.image, requests, self._rules), validate_only=validate_only
        )

    def replace_configs(
        self, requests: Sequence[ResourceReplacement], *, validate_only: bool = False
    ) -> Completion[list[ApiError | None]]:
        """Replace all settings of resources, each given once."""
        return self._submit(
            lambda: decide_replace_configs(self.image, requests, self._rules), validate_only=validate_only
        )

    def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Completion[None]:
        """Set the levels of features, each given once: all or, with an `ApiError`, none."""
        return self._submit(
            lambda: (decide_update_features(self.image.features, updates, self._node.node_id), None),
            validate_only=validate_only,
        )

    def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> Completion[list[ApiError | None]]:
        """Change the quotas of entities; an entity given twice is refused."""
        return self._submit(
            lambda: decide_alter_client_quotas(self.image.client_quotas, alterations),
            validate_only=validate_only,
        )

    def alter_scram_credentials(
        self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
    ) -> Completion[dict[str, ApiError | None]]:
        """Delete and set credentials; the answers are by user."""
        return self._submit(
            lambda: decide_alter_credentials(self.image.scram_credentials, deletions, upsertions)
        )

    def reset(self) -> Completion[None]:
        """Remove all topics, internal ones as well, and the settings of all groups; for brokers of tests."""
        return self._submit(lambda: (decide_reset(self.image), None))

    def allocate_producer_id_block(self) -> Completion[range]:
        """A block of producer ids that are never given out again, also not after a crash."""
        return self._submit(self._decide_producer_id_block)

    def _decide_producer_id_block(self) -> tuple[list[MetadataRecord], range]:
        first = self.image.next_producer_id
        block = range(first, first + PRODUCER_IDS_PER_BLOCK)
        record = ProducerIdsRecord(
            broker_id=self._node.node_id, broker_epoch=self.node_epoch, next_producer_id=block.stop
        )
        return [record], block

    def _placement(self) -> TopicPlacement:
        node = self._node
        return TopicPlacement(node.node_id, self.node_epoch, node.directory_id, self._default_partition_count)

    def _registration(self, node_epoch: int) -> list[MetadataRecord]:
        node = self._node
        features = tuple(
            BrokerFeature(name=name, min_supported_version=least, max_supported_version=greatest)
            for name, (least, greatest) in SUPPORTED_FEATURES.items()
        )
        registration = RegisterBrokerRecord(
            broker_id=node.node_id,
            incarnation_id=self._new_id(),
            broker_epoch=node_epoch,
            end_points=node.endpoints,
            features=features,
            rack=None,
            fenced=False,
            log_dirs=(node.directory_id,),
        )
        return [*newly_supported(self._known_features()), registration]

    def _known_features(self) -> Iterable[str]:
        """The features that the log has a decision about: not those that came with a new release."""
        last = self.image.brokers.get(self._node.node_id)
        if last is None:
            return SUPPORTED_FEATURES if self.image.features else ()
        return [feature.name for feature in last.features]

    # --- decide, append, replay, reply ------------------------------------------------------------

    def _submit(
        self, decide: Callable[[], tuple[list[MetadataRecord], _T]], *, validate_only: bool = False
    ) -> Completion[_T]:
        reply: Completion[_T] = Completion()
        if len(self._waiting) >= QUEUED_DECISIONS_MAX:
            reply.fail(
                ApiError(ErrorCode.throttling_quota_exceeded, "Too many changes of metadata at a time.")
            )
            return reply
        self._waiting.append(partial(self._decide, decide, validate_only, reply))
        self._decide_next()
        return reply

    def _decide_next(self) -> None:
        if self._deciding:
            return  # An append that ended at once called back from within the loop below.
        self._deciding = True
        try:
            while self._waiting and not self._appending:
                self._waiting.popleft()()
        finally:
            self._deciding = False

    def _decide(
        self,
        decide: Callable[[], tuple[list[MetadataRecord], Any]],
        validate_only: bool,
        reply: Completion[Any],
    ) -> None:
        try:
            records, result = decide()
            self._appending = bool(records) and not validate_only
            append = self._log.append(records, self._wall_ms()) if self._appending else None
        except Exception as error:
            # An ApiError is the answer. Anything else is a defect: the caller of the operation gets it.
            self._appending = False
            reply.fail(error)
            return
        if append is None:
            reply.complete(result)
            return
        append.when_done(partial(self._appended, records, result, reply))

    def _appended(
        self, records: Sequence[MetadataRecord], result: Any, reply: Completion[Any], append: Append
    ) -> None:
        self._appending = False
        if append.error is None:
            append.then(partial(self._replay, records, result)).when_done(reply.end_as)
        else:
            reply.fail(_as_api_error(append.error))
            self._note_failure(append.error)
        self._decide_next()

    def _note_failure(self, error: Exception) -> None:
        # An append that a full queue or a full disk refused has written nothing, so the image is right.
        in_doubt = isinstance(error, StorageError) and not isinstance(error, AppendQueueFull | DiskFull)
        if in_doubt and not self._failed:
            self._failed = True
            if self.on_failed is not None:
                self.on_failed(error)

    def _replay(self, records: Sequence[MetadataRecord], result: _T, appended: Appended) -> _T:
        """Replay the records, tell the listeners, and return the result of the decision. An exception is a
        defect: the caller of the operation gets it.
        """
        changes = MetadataChanges()
        for record in records:
            self.image.replay(record, changes)
        self._log.replayed(appended, changes)
        for listener in self.listeners:
            listener(changes)
        return result


def _as_api_error(error: Exception) -> Exception:
    return ApiError(error.code, str(error)) if isinstance(error, StorageError) else error
