"""Makes a `BrokerConfig` of the settings in a file, the environment and flags.

Flags win over the environment, the environment over the file, and the file over the variables of Apache
Kafka's container image (`KAFKA_LISTENERS`). An unknown name is refused, and the error names the nearest known
one. A setting that asks for protection is refused. Kafka's settings that Barnabas does not use have no
effect; one warning names them all.
"""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.broker.config import tables
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.errors import ConfigError, InvalidValueError
from barnabas.broker.config.kafka_names import REMOVED_SETTINGS, RENAMED_SETTINGS, UNUSED_SETTINGS
from barnabas.broker.config.listener import CONTROLLER
from barnabas.broker.config.protection import refuse_protection
from barnabas.broker.config.sources import (
    ENVIRONMENT_PREFIX,
    find_kafka_variables,
    find_variables,
    read_file,
    read_flags,
)
from barnabas.protocol.nearest_name import nearest_name


def load_config(file: str | None, environ: Mapping[str, str], overrides: Sequence[str]) -> BrokerConfig:
    """The broker's configuration; raises `ConfigError` with a message that names the setting to change.

    Args:
        file: path of a `.properties` or `.toml` file, or None.
        environ: the environment, in which `BARNABAS_LOG_RETENTION_MS` sets log.retention.ms.
        overrides: `NAME=VALUE` for each `--set` flag.
    """
    variables = find_variables(environ, tables.environment_names(ENVIRONMENT_PREFIX))
    flags = read_flags(overrides)
    in_file: Mapping[str, str] = {} if file is None else read_file(file)
    kafka_variables = {
        name: variable
        for name, variable in find_kafka_variables(environ).items()
        if name not in {*in_file, *variables, *flags}
    }
    variables = {
        name: variable for name, variable in {**kafka_variables, **variables}.items() if name not in flags
    }
    given = {**in_file, **{name: environ[variable] for name, variable in variables.items()}, **flags}
    for name, variable in variables.items():
        _check(f"{variable} in the environment", name, environ[variable])
    for name, text in in_file.items():
        if name not in variables and name not in flags:
            _check(f"The configuration file {file}", name, text)
    unused = sorted(name for name in given if _is_unused(name))
    refuse_protection(given, variables, _controller_names(given))
    return BrokerConfig(
        {name: text for name, text in given.items() if name in tables.BROKER}, _warnings(unused)
    )


def _controller_names(given: Mapping[str, str]) -> frozenset[str]:
    names = given.get("controller.listener.names", "").upper().split(",")
    return frozenset({CONTROLLER, *map(str.strip, names)})


def _check(source: str, name: str, text: str) -> None:
    """Raises ConfigError that names the source, because another tool may have set it, such as an
    orchestrator.
    """
    try:
        if not _is_unused(name):
            tables.BROKER[name].parse(text)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    except InvalidValueError as error:
        raise ConfigError(f"{source}: {error}.") from None


def _is_unused(name: str) -> bool:
    """False for a setting of Barnabas, True for one that only Kafka uses. Raises `ConfigError` for any other
    name.
    """
    if name in tables.BROKER:
        return False
    if name in UNUSED_SETTINGS or name.startswith("listener.name."):
        return True
    if name in RENAMED_SETTINGS:
        raise ConfigError(f"The setting {name} was renamed: it is {RENAMED_SETTINGS[name]} now.")
    if name in REMOVED_SETTINGS:
        raise ConfigError(f"There is no setting {name}: {REMOVED_SETTINGS[name]}.")
    in_small_letters = name.lower().replace("_", ".")  # it may be in the form of the environment
    nearest = nearest_name(in_small_letters, (*tables.BROKER, *UNUSED_SETTINGS))
    raise ConfigError(f"There is no setting {name}." + (f" Is {nearest} meant?" if nearest else ""))


def _warnings(unused: Iterable[str]) -> tuple[str, ...]:
    names = ", ".join(unused)
    return (f"These settings of Apache Kafka have no effect here: {names}.",) if names else ()
