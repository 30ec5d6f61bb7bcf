"""Spans of OpenTelemetry for requests (docs/metrics.md). `opening` loads the libraries if a setting asks for
them.
"""
