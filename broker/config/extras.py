"""Checks that the libraries of a setting are installed, which are not installed with every broker."""

from collections.abc import Iterable
from importlib.util import find_spec

from barnabas.broker.config.errors import ConfigError


def require_libraries(setting: str, modules: Iterable[str], extra: str) -> None:
    """Raises ConfigError that names the missing modules and the extra that installs them."""
    missing = ", ".join(name for name in modules if not _is_installed(name))
    if missing:
        raise ConfigError(
            f"{setting} needs {missing}. Install with: pip install 'barnabas[{extra}]' (in a checkout: "
            f"pip install -e '.[{extra}]')."
        )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False
