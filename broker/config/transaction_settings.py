"""The settings of transactions, with the names and defaults of Apache Kafka 4.3, and one that only Barnabas
has. Pure.
"""

from barnabas.broker.config.setting import Setting, SettingType, at_least, between

_BOOLEAN, _INT = SettingType.BOOLEAN, SettingType.INT
_MIB = 1024 * 1024
_DAY_MS = 24 * 60 * 60 * 1000

TRANSACTION_SETTINGS = (
    Setting(
        "transaction.max.timeout.ms",
        _INT,
        900_000,
        "The longest timeout that a producer may request for its transactions.",
        at_least(1),
    ),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        _INT,
        10_000,
        "How often open transactions are checked for their timeout.",
        at_least(1),
    ),
    Setting(
        "transactional.id.expiration.ms",
        _INT,
        7 * _DAY_MS,
        "How long an unused transactional id is kept.",
        at_least(1),
    ),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        _INT,
        3_600_000,
        "How often unused transactional ids are checked for expiration.",
        at_least(1),
    ),
    Setting(
        "transaction.state.log.num.partitions",
        _INT,
        50,
        "The number of partitions with which __transaction_state is created.",
        at_least(1),
    ),
    Setting(
        "transaction.state.log.segment.bytes",
        _INT,
        100 * _MIB,
        "The segment size, in bytes, with which __transaction_state is created.",
        at_least(_MIB),
    ),
    Setting(
        "transaction.partition.verification.enable",
        _BOOLEAN,
        True,
        "Whether writes of producers before transaction.version 2 are refused for partitions that they did "
        "not add to their transaction. The broker adds the partitions of newer producers.",
        dynamic=True,
    ),
    Setting(
        "transaction.max.transactional.ids",
        _INT,
        100_000,
        "The most transactional ids; one more is refused (not in Apache Kafka).",
        between(1, 10_000_000),
        ours=True,
    ),
)
