"""The settings of transactions, with the names and defaults that Apache Kafka 4.3 gives them, and one of
ours. Pure.
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
        "The longest time that a producer may allow its transactions.",
        at_least(1),
    ),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        _INT,
        10_000,
        "How often open transactions are looked at for whether they have taken too long.",
        at_least(1),
    ),
    Setting(
        "transactional.id.expiration.ms",
        _INT,
        7 * _DAY_MS,
        "How long a transactional id is kept that nobody uses.",
        at_least(1),
    ),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        _INT,
        3_600_000,
        "How often transactional ids are looked at for whether anybody uses them.",
        at_least(1),
    ),
    Setting(
        "transaction.state.log.num.partitions",
        _INT,
        50,
        "How many partitions __transaction_state is created with.",
        at_least(1),
    ),
    Setting(
        "transaction.state.log.segment.bytes",
        _INT,
        100 * _MIB,
        "The segment size, in bytes, that __transaction_state is created with.",
        at_least(_MIB),
    ),
    Setting(
        "transaction.partition.verification.enable",
        _BOOLEAN,
        True,
        "Whether older producers' writes are refused for partitions that they haven't added to their "
        "transaction; newer ones' are added.",
        dynamic=True,
    ),
    Setting(
        "transaction.max.transactional.ids",
        _INT,
        100_000,
        "The most transactional ids that are kept; one more is refused (not in Apache Kafka).",
        between(1, 10_000_000),
        ours=True,
    ),
)
