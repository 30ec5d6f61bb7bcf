"""The broker's settings of listeners, requests, connections and topics.

Names and defaults are Kafka's wherever Kafka has the setting. The settings of logs are in `log_settings.py`,
those of the metadata log in `metadata_settings.py`, those of share groups in `share_settings.py`. Pure.
"""

from barnabas.broker.config.setting import ARRAY_BYTES_MAX, INT_MAX, Setting, SettingType, at_least, between

_BOOLEAN, _STRING, _LIST = SettingType.BOOLEAN, SettingType.STRING, SettingType.LIST
_INT, _LONG = SettingType.INT, SettingType.LONG
_MIB = 1024 * 1024

SERVER_SETTINGS = (
    Setting("node.id", _INT, 1, "The id of this node in Metadata and in the metadata log.", at_least(0)),
    Setting(
        "cluster.id",
        _STRING,
        None,
        "The cluster of a new data directory; a data directory of another cluster is refused. If not set, a "
        "new directory gets a random id, and any directory is used.",
        ours=True,
    ),
    Setting(
        "listeners",
        _LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        "The addresses on which clients connect: NAME://HOST:PORT, separated by commas. No host means all "
        "interfaces.",
    ),
    Setting(
        "listeners.allow.unauthenticated",
        _BOOLEAN,
        False,
        "Whether listeners that other machines can reach are meant to be open to every client. false: the "
        "start is refused if such a listener has neither SASL nor required client certificates.",
        ours=True,
    ),
    Setting(
        "advertised.listeners",
        _LIST,
        None,
        "The addresses in Metadata responses, by listener name. If not set, the listeners' own.",
    ),
    Setting(
        "listener.security.protocol.map",
        _LIST,
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "The security protocol of each listener name, as NAME:PROTOCOL: PLAINTEXT, SSL, SASL_PLAINTEXT or "
        "SASL_SSL. The name of a protocol stands for itself.",
    ),
    Setting(
        "controller.listener.names",
        _LIST,
        (),
        "Listeners that are not opened, because the controller of this broker needs no port of its own.",
    ),
    Setting(
        "inter.broker.listener.name",
        _STRING,
        None,
        "The listener for other brokers, if inter.broker.apis.enable is true.",
    ),
    Setting(
        "inter.broker.apis.enable",
        _BOOLEAN,
        False,
        "Whether the listener of inter.broker.listener.name serves the APIs between brokers: those of the "
        "share coordinator, and the metadata log with its snapshots. No other listener advertises or serves "
        "them.",
        ours=True,
    ),
    Setting(
        "num.partitions",
        _INT,
        1,
        "The number of partitions of a topic that is created without one.",
        at_least(1),
    ),
    Setting(
        "auto.create.topics.enable",
        _BOOLEAN,
        True,
        "Whether a Metadata request may create the topics that it names, if it allows that itself.",
    ),
    Setting("delete.topic.enable", _BOOLEAN, True, "Whether DeleteTopics is served."),
    Setting(
        "message.max.bytes",
        _INT,
        _MIB + 12,
        "The largest record batch, in bytes after compression, that a producer may send.",
        at_least(0),
        dynamic=True,
    ),
    Setting(
        "max.decompressed.message.bytes",
        _INT,
        ARRAY_BYTES_MAX,
        "The largest record of a compressed batch, in bytes once it is decompressed.",
        between(1, ARRAY_BYTES_MAX),
        dynamic=True,
    ),
    Setting(
        "socket.request.max.bytes",
        _INT,
        100 * _MIB,
        "The largest request in bytes. A longer one closes the connection.",
        at_least(1),
    ),
    Setting(
        "queued.max.request.bytes",
        _LONG,
        256 * _MIB,
        "The most bytes of unanswered requests that all connections together may hold. At this limit "
        "large requests are received one after the other. At least socket.request.max.bytes, which is the "
        "default if it is larger; -1: no limit, Kafka's default.",
        at_least(-1),
    ),
    Setting(
        "socket.listen.backlog.size",
        _INT,
        4096,
        "The most connections that wait to be accepted; the system may have a lower limit (`somaxconn`). "
        "Apache Kafka's default is 50. A client that finds the queue full tries again after seconds.",
        at_least(1),
    ),
    Setting(
        "connections.max.idle.ms",
        _LONG,
        600_000,
        "The time after which a connection that sends nothing is closed. Below 0: never.",
    ),
    Setting(
        "max.connections",
        _INT,
        INT_MAX,
        "The most open connections. A further one is closed at once. At least 2, because an administrator's "
        "client needs two connections to change it again.",
        at_least(2),
        dynamic=True,
    ),
    Setting(
        "fetch.max.bytes",
        _INT,
        55 * _MIB,
        "The most bytes of records in the response to one Fetch or ShareFetch; never more than 8 MiB.",
        at_least(1024),
    ),
    Setting(
        "max.incremental.fetch.session.cache.slots",
        _INT,
        1000,
        "The most fetch sessions. A client without one names all its partitions in every request.",
        at_least(0),
    ),
    Setting(
        "max.request.partition.size.limit",
        _INT,
        2000,
        "The most partitions in one response to DescribeTopicPartitions.",
        at_least(1),
    ),
    Setting(
        "producer.id.expiration.ms",
        _INT,
        86_400_000,
        "How long a partition keeps the last sequence number of a producer that sends nothing.",
        at_least(1),
        dynamic=True,
    ),
)
