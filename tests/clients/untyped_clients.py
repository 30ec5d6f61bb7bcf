"""Client libraries without type information, looked up by name so that type checkers take them as Any."""

from importlib import import_module
from typing import Any

kafka_python: Any = import_module("kafka")
aiokafka: Any = import_module("aiokafka")
