"""The broker's setting of OpenTelemetry (docs/metrics.md). Pure."""

from barnabas.broker.config.setting import Setting, SettingType

TRACING_SETTINGS = (
    Setting(
        "opentelemetry.spans.enable",
        SettingType.BOOLEAN,
        False,
        "Whether each request is a span of OpenTelemetry, sent by OTLP over HTTP. The environment variables "
        "of OpenTelemetry (OTEL_EXPORTER_OTLP_ENDPOINT and others) say where and how.",
        ours=True,
    ),
)
