"""The environment variables of Apache Kafka's container image (KIP-975).

Their names: `KAFKA_`, then the setting in capitals, with `_` for a dot, `__` for an underscore and `___` for
a hyphen. `CLUSTER_ID` is the cluster of the data directory. Listeners follow from the advertised ones if only
these are given. Variables that configure Kafka's scripts and its Java process have no effect, and a warning
names them; so does a warning for a misspelt setting, because the variable may belong to another program.
Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.nearest_name import nearest_name

PREFIX: Final = "KAFKA_"
CLUSTER_ID_VARIABLE: Final = "CLUSTER_ID"
CLUSTER_ID_SETTING: Final = "cluster.id"

_LISTENERS: Final = "listeners"
_ADVERTISED_LISTENERS: Final = "advertised.listeners"
_LISTENER_PREFIX: Final = "listener.name."
_SCRIPT_VARIABLES: Final = frozenset(
    {
        "KAFKA_DEBUG",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_CMD_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_MODE",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)
"""Read by Kafka's scripts, and no settings of a broker."""


class ImageVariables(NamedTuple):
    """The meaning of the variables."""

    texts: Mapping[str, str]
    """The text of each setting."""
    variables: Mapping[str, str]
    """The variable of each of these settings."""
    warnings: Sequence[str]


def read_image_variables(environ: Mapping[str, str], known: Iterable[str]) -> ImageVariables:
    """Reads the variables in `environ` that begin with `KAFKA_` and are not empty.

    `known` are the names of all settings, those of Kafka that have no effect included.
    """
    by_variable = {PREFIX + name.upper().replace(".", "_"): name for name in known}
    variables: dict[str, str] = {}
    without_effect: list[str] = []
    warnings: list[str] = []
    for variable in sorted(name for name in environ if name.startswith(PREFIX) and environ[name]):
        name = by_variable.get(variable, _setting_name(variable))
        if variable in by_variable or name.startswith(_LISTENER_PREFIX):
            variables[name] = variable
        elif variable in _SCRIPT_VARIABLES or (nearest := nearest_name(variable, by_variable)) is None:
            without_effect.append(variable)
        else:
            warnings.append(f"{variable} in the environment sets nothing. Is {nearest} meant?")
    if without_effect:
        names = ", ".join(without_effect)
        warnings.insert(0, f"These variables in the environment have no effect here: {names}.")
    texts = {name: environ[variable] for name, variable in variables.items()}
    return ImageVariables(texts, variables, warnings)


def listeners_of_advertised(image: ImageVariables) -> ImageVariables:
    """The setting `listeners` that follows from advertised listeners: their ports, on all interfaces. Nothing
    if there are none.
    """
    if _ADVERTISED_LISTENERS not in image.texts:
        return ImageVariables({}, {}, ())
    listeners = ",".join(map(_on_all_interfaces, image.texts[_ADVERTISED_LISTENERS].split(",")))
    return ImageVariables({_LISTENERS: listeners}, {_LISTENERS: image.variables[_ADVERTISED_LISTENERS]}, ())


def with_cluster_id(image: ImageVariables, environ: Mapping[str, str]) -> ImageVariables:
    """Adds `CLUSTER_ID`, which other programs may use as well: only the container image reads it."""
    cluster_id = environ.get(CLUSTER_ID_VARIABLE)
    if not cluster_id:
        return image
    return image._replace(
        texts={**image.texts, CLUSTER_ID_SETTING: cluster_id},
        variables={**image.variables, CLUSTER_ID_SETTING: CLUSTER_ID_VARIABLE},
    )


def _setting_name(variable: str) -> str:
    dotted = variable.removeprefix(PREFIX).lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")


def _on_all_interfaces(advertised: str) -> str:
    name, _, address = advertised.strip().partition("://")
    return f"{name}://:{address.rpartition(':')[2]}"
