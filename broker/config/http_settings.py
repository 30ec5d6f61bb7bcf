"""The broker's settings of HTTP (docs/http.md). Pure."""

from barnabas.broker.config.setting import Setting, SettingType

HTTP_SETTINGS = (
    Setting(
        "http.listener",
        SettingType.STRING,
        None,
        "The address of the HTTP server: PORT for this machine only, HOST:PORT, or :PORT for all interfaces. "
        "Port 0 selects a free one. Not set: no HTTP.",
        ours=True,
    ),
    Setting(
        "http.allowed.hosts",
        SettingType.LIST,
        (),
        "Host names by which clients may address the HTTP server, besides localhost and the host of "
        "http.listener. IP addresses are always allowed.",
        ours=True,
    ),
    Setting(
        "http.token.file",
        SettingType.STRING,
        None,
        "A file with the token that HTTP requests need if they change something. Not set: HTTP changes "
        "nothing.",
        ours=True,
    ),
)
