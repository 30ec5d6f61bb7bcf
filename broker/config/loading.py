"""Makes a `BrokerConfig` of the settings in files, the environment and flags.

Flags win over the variables of the environment with the prefix `BARNABAS_`, these over those of Apache
Kafka's container image (`KAFKA_LISTENERS`), and all of them over the file, as in Apache Kafka's image. The
defaults of the container image are weakest. An unknown name is refused, and the error names the nearest known
one. A setting that asks for protection is refused. Kafka's settings that Barnabas does not use have no
effect; one warning names them all.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.broker.config import tables
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.errors import ConfigError, InvalidValueError
from barnabas.broker.config.kafka_image import (
    PREFIX,
    ImageVariables,
    listeners_of_advertised,
    read_image_variables,
    with_cluster_id,
)
from barnabas.broker.config.kafka_names import REMOVED_SETTINGS, RENAMED_SETTINGS, UNUSED_SETTINGS
from barnabas.broker.config.listener import CONTROLLER
from barnabas.broker.config.protection import refuse_protection
from barnabas.broker.config.sources import (
    DEFAULTS_VARIABLE,
    ENVIRONMENT_PREFIX,
    find_variables,
    read_file,
    read_flags,
    without_services,
)
from barnabas.protocol.nearest_name import nearest_name


class _Assignment(NamedTuple):
    """A setting's text, and its origin."""

    text: str
    origin: str = ""
    """Begins an error about it, because another tool may have set it, such as an orchestrator. Empty for a
    flag, which the user has just written.
    """
    variable: str | None = None


_Assignments = Mapping[str, _Assignment]
"""By the setting's name."""


def load_config(file: str | None, environ: Mapping[str, str], overrides: Sequence[str]) -> BrokerConfig:
    """The broker's configuration; raises `ConfigError` with a message that names the setting to change.

    Args:
        file: path of a `.properties` or `.toml` file, or None.
        environ: the environment, in which `BARNABAS_LOG_RETENTION_MS` sets log.retention.ms.
        overrides: `NAME=VALUE` for each `--set` flag.
    """
    image = _read_image(environ)
    assigned = {
        **_in_file("The file of defaults", environ.get(DEFAULTS_VARIABLE)),
        **_in_variables(listeners_of_advertised(image)),
        **_in_file("The configuration file", file),
        **_in_variables(image),
        **_in_environment(environ),
        **{name: _Assignment(text) for name, text in read_flags(overrides).items()},
    }
    for name, assignment in assigned.items():
        _check(name, assignment)
    given = {name: assignment.text for name, assignment in assigned.items()}
    written_as = {
        name: assignment.variable for name, assignment in assigned.items() if assignment.variable is not None
    }
    refuse_protection(given, written_as, _controller_names(given))
    warnings = (*_warnings(sorted(filter(_is_unused, given))), *image.warnings)
    used = {name: text for name, text in given.items() if tables.find_broker_setting(name) is not None}
    return BrokerConfig(used, warnings)


def _read_image(environ: Mapping[str, str]) -> ImageVariables:
    known = (*tables.BROKER, *UNUSED_SETTINGS, *RENAMED_SETTINGS, *REMOVED_SETTINGS)
    image = read_image_variables(without_services(environ, PREFIX), known)
    return with_cluster_id(image, environ) if environ.get(DEFAULTS_VARIABLE) else image


def _in_file(kind: str, path: str | None) -> _Assignments:
    if not path:
        return {}
    return {name: _Assignment(text, f"{kind} {path}: ") for name, text in read_file(path).items()}


def _in_environment(environ: Mapping[str, str]) -> _Assignments:
    variables = find_variables(environ, tables.environment_names(ENVIRONMENT_PREFIX))
    return {name: _in_variable(variable, environ[variable]) for name, variable in variables.items()}


def _in_variables(image: ImageVariables) -> _Assignments:
    return {name: _in_variable(image.variables[name], text) for name, text in image.texts.items()}


def _in_variable(variable: str, text: str) -> _Assignment:
    return _Assignment(text, f"{variable} in the environment: ", variable)


def _controller_names(given: Mapping[str, str]) -> frozenset[str]:
    names = given.get("controller.listener.names", "").upper().split(",")
    return frozenset({CONTROLLER, *map(str.strip, names)})


def _check(name: str, assignment: _Assignment) -> None:
    """Raises ConfigError that names the origin."""
    try:
        if not _is_unused(name):
            tables.broker_setting(name).parse(assignment.text)
    except ConfigError as error:
        raise ConfigError(f"{assignment.origin}{error}") from None
    except InvalidValueError as error:
        raise ConfigError(f"{assignment.origin}{error}.") from None


def _is_unused(name: str) -> bool:
    """False for a setting of Barnabas, True for one that only Kafka uses. Raises `ConfigError` for any other
    name.
    """
    if tables.find_broker_setting(name) is not None:
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
