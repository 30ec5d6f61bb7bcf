"""The tables of settings by name, and the names that a configuration may contain. Pure."""

from collections.abc import Iterable, Mapping

from barnabas.broker.config.bounded_setting import BoundedSetting
from barnabas.broker.config.classic_group_settings import CLASSIC_GROUP_SETTINGS
from barnabas.broker.config.cleaner_settings import CLEANER_SETTINGS
from barnabas.broker.config.consumer_settings import (
    CONSUMER_BOUNDED_SETTINGS,
    CONSUMER_GROUP_SETTINGS,
    CONSUMER_SETTINGS,
)
from barnabas.broker.config.dead_letter_settings import (
    DEAD_LETTER_GROUP_SETTINGS,
    DEAD_LETTER_SETTINGS,
    DEAD_LETTER_TOPIC_SETTINGS,
)
from barnabas.broker.config.http_settings import HTTP_SETTINGS
from barnabas.broker.config.kafka_names import REMOVED_SETTINGS, RENAMED_SETTINGS, UNUSED_SETTINGS
from barnabas.broker.config.log_settings import LOG_SETTINGS
from barnabas.broker.config.metadata_settings import METADATA_SETTINGS
from barnabas.broker.config.offset_settings import OFFSET_SETTINGS
from barnabas.broker.config.priority_settings import PRIORITY_GROUP_SETTINGS
from barnabas.broker.config.quota_settings import QUOTA_SETTINGS
from barnabas.broker.config.security_settings import SECURITY_SETTINGS, find_listener_setting
from barnabas.broker.config.server_settings import SERVER_SETTINGS
from barnabas.broker.config.setting import Setting
from barnabas.broker.config.share_settings import (
    SHARE_BOUNDED_SETTINGS,
    SHARE_GROUP_SETTINGS,
    SHARE_SETTINGS,
)
from barnabas.broker.config.share_state_settings import SHARE_STATE_SETTINGS
from barnabas.broker.config.topic_settings import TOPIC_SETTINGS
from barnabas.broker.config.tracing_settings import TRACING_SETTINGS
from barnabas.broker.config.transaction_settings import TRANSACTION_SETTINGS


def _by_name(settings: Iterable[Setting]) -> Mapping[str, Setting]:
    return {setting.name: setting for setting in settings}


BROKER: Mapping[str, Setting] = _by_name(
    (
        *SERVER_SETTINGS,
        *SECURITY_SETTINGS,
        *HTTP_SETTINGS,
        *TRACING_SETTINGS,
        *QUOTA_SETTINGS,
        *METADATA_SETTINGS,
        *LOG_SETTINGS,
        *CLEANER_SETTINGS,
        *CLASSIC_GROUP_SETTINGS,
        *OFFSET_SETTINGS,
        *CONSUMER_SETTINGS,
        *SHARE_SETTINGS,
        *SHARE_STATE_SETTINGS,
        *DEAD_LETTER_SETTINGS,
        *TRANSACTION_SETTINGS,
    )
)
TOPIC: Mapping[str, Setting] = _by_name(
    sorted((*TOPIC_SETTINGS, *DEAD_LETTER_TOPIC_SETTINGS), key=lambda setting: setting.name)
)
GROUP: Mapping[str, Setting] = _by_name(
    (*CONSUMER_GROUP_SETTINGS, *SHARE_GROUP_SETTINGS, *PRIORITY_GROUP_SETTINGS, *DEAD_LETTER_GROUP_SETTINGS)
)

BOUNDED: Mapping[str, BoundedSetting] = {
    bounded.group_name: bounded for bounded in (*SHARE_BOUNDED_SETTINGS, *CONSUMER_BOUNDED_SETTINGS)
}
"""The settings with bounds, by their names in a group."""

BROKER_SYNONYM_CHAINS: Mapping[str, tuple[str, ...]] = {
    name: tuple(synonym for synonym, _ in setting.broker_synonyms)
    for setting in TOPIC_SETTINGS
    if len(setting.broker_synonyms) > 1
    for name, _ in setting.broker_synonyms
}
"""For each broker setting that exists in several units: all of them, the strongest first. Settings with one
unit are not in the mapping.
"""


def find_broker_setting(name: str) -> Setting | None:
    """The setting of this name, which may be that of a single listener; None if the broker has none."""
    return BROKER.get(name) or find_listener_setting(name)


def broker_setting(name: str) -> Setting:
    """`find_broker_setting` for a name that is known to be one."""
    setting = find_broker_setting(name)
    assert setting is not None, name
    return setting


def environment_names(prefix: str) -> Mapping[str, str]:
    """Each name that a configuration may contain, by its environment variable."""
    names = (*BROKER, *UNUSED_SETTINGS, *RENAMED_SETTINGS, *REMOVED_SETTINGS)
    return {prefix + name.upper().replace(".", "_"): name for name in names}
