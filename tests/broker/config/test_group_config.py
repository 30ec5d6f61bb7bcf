"""A share group's settings: defaults, overrides, and values outside of narrower bounds."""

from barnabas.coordinator.metadata.image import ResourceType
from barnabas.share.fetch.share_group_config import AutoOffsetReset
from barnabas.share.partition.limits import ShareLimits
from tests.broker.config.config_fakes import configured


def test_a_group_without_settings_has_kafkas_defaults() -> None:
    config = configured().groups.of("g")
    assert config.limits == ShareLimits(
        delivery_count_max=5, lock_duration_ms=30_000, record_locks_max=2_000, renew_enabled=True
    )
    assert config.auto_offset_reset == AutoOffsetReset("latest")
    assert (config.read_committed, config.forces_record_limit) == (False, False)
    assert (config.session_timeout_ms, config.heartbeat_interval_ms) == (45_000, 5_000)
    assert config.assignment_interval_ms == 1_000


def test_a_groups_own_settings_win_at_once() -> None:
    parts = configured()
    plain = parts.groups.of("g")
    assert parts.groups.of("h") is plain
    parts.give(
        ResourceType.GROUP,
        "g",
        share__delivery__count__limit="7",
        share__auto__offset__reset="by_duration:PT1M",
        share__isolation__level="read_committed",
        share__renew__acknowledge__enable="false",
        share__record__limit__force="true",
        share__session__timeout__ms="50000",
    )
    config = parts.groups.of("g")
    assert (config.limits.delivery_count_max, config.limits.renew_enabled) == (7, False)
    assert config.auto_offset_reset == AutoOffsetReset("by_duration", 60_000)
    assert (config.read_committed, config.forces_record_limit) == (True, True)
    assert parts.groups.session_timeout_ms("g") == 50_000
    assert parts.groups.of("g") is config
    assert parts.groups.of("h") == plain


def test_the_broker_settings_may_change_while_it_runs() -> None:
    parts = configured()
    assert parts.groups.assignment_interval_ms("g") == 1_000
    parts.give(ResourceType.BROKER, "", group__share__assignment__interval__ms="9")
    assert parts.groups.assignment_interval_ms("g") == 9
    assert parts.groups.heartbeat_interval_ms("g") == 5_000


def test_the_assignor_is_the_groups_own_or_the_brokers() -> None:
    parts = configured()
    assert parts.groups.assignor("g") == "simple"
    parts.give(ResourceType.GROUP, "g", share__assignor__name="load")
    assert [parts.groups.assignor(name) for name in ("g", "h")] == ["load", "simple"]
    parts = configured(group__share__assignors="load")
    parts.give(ResourceType.GROUP, "g", share__assignor__name="simple")
    assert [parts.groups.assignor(name) for name in ("g", "h")] == ["simple", "load"]


def test_stored_values_are_capped_to_narrower_bounds() -> None:
    parts = configured(
        group__share__max__record__lock__duration__ms="30000", group__share__min__session__timeout__ms="45000"
    )
    parts.give(
        ResourceType.GROUP,
        "g",
        share__record__lock__duration__ms="60000",
        share__session__timeout__ms="1000",
        share__delivery__count__limit="4",
    )
    assert parts.groups.of("g").limits.lock_duration_ms == 30_000
    assert parts.groups.of("g").session_timeout_ms == 45_000
    assert list(parts.groups.capped()) == [
        "Group g has share.record.lock.duration.ms=60000, which the broker's bounds cap to 30000.",
        "Group g has share.session.timeout.ms=1000, which the broker's bounds cap to 45000.",
    ]
