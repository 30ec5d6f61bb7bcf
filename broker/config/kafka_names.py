"""Names in configurations of Apache Kafka: settings that Barnabas does not use, settings that were renamed or
removed, and the classes of Kafka's own assignors.

A `server.properties` written for Kafka 4.4.0 has many names that Barnabas does not use. They are ignored with
one warning, so that the file can be used unchanged. A renamed or removed name is refused, because ignoring it
would lose its value; the error has the new name or the reason. Pure.
"""

from collections.abc import Mapping

ASSIGNOR_CLASSES = (
    ("org.apache.kafka.coordinator.group.assignor.SimpleAssignor", "simple"),
    ("org.apache.kafka.coordinator.group.assignor.UniformAssignor", "uniform"),
    ("org.apache.kafka.coordinator.group.assignor.RangeAssignor", "range"),
)
"""The assignors that Kafka has built in, by class and name. A configuration may use either."""

UNUSED_SETTINGS = frozenset(
    """
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    allow.everyone.if.no.acl.found alter.config.policy.class.name
    alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
    authorizer.class.name auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms
    broker.rack broker.session.timeout.ms client.quota.callback.class config.providers
    controlled.shutdown.enable controller.performance.always.log.threshold.ms
    controller.performance.sample.period.ms controller.quorum.append.linger.ms
    controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
    controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
    controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
    controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
    controller.quorum.retry.backoff.ms controller.quorum.voters controller.socket.timeout.ms
    cordoned.log.dirs create.topic.policy.class.name default.replication.factor
    delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
    delegation.token.max.lifetime.ms delegation.token.secret.key
    delete.records.purgatory.purge.interval.requests early.start.listeners
    fetch.purgatory.purge.interval.requests follower.fetch.last.tiered.offset.enable
    group.coordinator.append.linger.ms group.coordinator.background.threads
    group.coordinator.cached.buffer.max.bytes group.coordinator.threads
    group.consumer.assignor.offload.enable group.share.assignor.offload.enable
    group.share.persister.class.name group.streams.acceptable.recovery.lag
    group.streams.assignment.interval.ms group.streams.assignor.offload.enable group.streams.assignors
    group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
    group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
    group.streams.max.session.timeout.ms group.streams.max.size group.streams.max.standby.replicas
    group.streams.max.warmup.replicas group.streams.min.assignment.interval.ms
    group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
    group.streams.min.task.offset.interval.ms group.streams.num.standby.replicas
    group.streams.num.warmup.replicas group.streams.rack.aware.assignment.tags
    group.streams.session.timeout.ms group.streams.task.offset.interval.ms
    group.streams.topology.description.plugin.class initial.broker.registration.timeout.ms
    internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
    internal.metadata.max.batch.size.in.bytes kafka.metrics.polling.interval.secs kafka.metrics.reporters
    leader.imbalance.check.interval.seconds log.cleaner.io.buffer.load.factor log.cleaner.threads
    log.dir.failure.timeout.ms log.flush.start.offset.checkpoint.interval.ms log.initial.task.delay.ms
    max.connection.creation.rate max.connections.per.ip max.connections.per.ip.overrides metadata.log.dir
    metadata.max.idle.interval.ms metric.reporters metrics.num.samples metrics.recording.level
    metrics.sample.window.ms num.io.threads num.network.threads num.recovery.threads.per.data.dir
    num.replica.alter.log.dirs.threads num.replica.fetchers offsets.commit.timeout.ms
    offsets.load.buffer.size offsets.topic.compression.codec offsets.topic.replication.factor
    principal.builder.class process.roles producer.id.expiration.check.interval.ms
    producer.purgatory.purge.interval.requests queued.max.requests remote.fetch.max.wait.ms
    remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
    remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size
    remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
    remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
    remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
    remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
    remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
    remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
    remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
    remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
    remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
    remote.log.reader.max.pending.tasks remote.log.reader.threads remote.log.storage.manager.class.name
    remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
    remote.log.storage.system.enable replica.fetch.backoff.ms replica.fetch.max.bytes
    replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
    replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
    replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
    replication.quota.window.size.seconds request.timeout.ms sasl.client.callback.handler.class
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
    sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms
    sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms
    sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol
    sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    sasl.server.callback.handler.class security.inter.broker.protocol security.providers
    server.max.startup.time.ms share.coordinator.append.linger.ms
    share.coordinator.cached.buffer.max.bytes share.coordinator.load.buffer.size
    share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.replication.factor share.coordinator.threads
    share.coordinator.write.timeout.ms share.fetch.purgatory.purge.interval.requests
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms socket.receive.buffer.bytes
    socket.send.buffer.bytes ssl.allow.dn.changes ssl.allow.san.changes
    ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.keymanager.algorithm ssl.protocol
    ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm super.users
    telemetry.max.bytes transaction.state.log.load.buffer.size transaction.state.log.min.isr
    transaction.state.log.replication.factor transaction.two.phase.commit.enable
    unclean.leader.election.interval.ms unstable.api.versions.enable unstable.feature.versions.enable
    """.split()  # noqa: SIM905 - quotes around three hundred names would make the list hard to read
)
"""The broker settings of Apache Kafka 4.4.0 that Barnabas does not use, including internal ones (many
`server.properties` for share groups have `unstable.api.versions.enable`) and the settings of its authorizer.
`protection.py` refuses those that ask for protection.
"""

RENAMED_SETTINGS: Mapping[str, str] = {
    "broker.id": "node.id",
    "group.share.delivery.attempt.limit": "group.share.delivery.count.limit",
    "group.share.record.lock.duration.max.ms": "group.share.max.record.lock.duration.ms",
    "group.share.record.lock.partition.limit": "group.share.partition.max.record.locks",
    "log.message.timestamp.difference.max.ms": "log.message.timestamp.before.max.ms",
    "max.share.session.cache.slots": "group.share.max.share.sessions",
}
"""Today's name, by the name that KIP-932 proposed or earlier releases had."""

REMOVED_SETTINGS: Mapping[str, str] = {
    "group.share.auto.offset.reset": "it is set per group, as share.auto.offset.reset",
    "group.share.enable": "the feature share.version decides whether share groups are served",
    "group.share.isolation.level": "it is set per group, as share.isolation.level",
    "zookeeper.connect": "there is no ZooKeeper",
}
"""The reason, by the name of a setting that was removed without a replacement."""
