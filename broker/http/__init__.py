"""The broker over HTTP: health, metrics, and an API for programs and administrators (docs/http.md).

Other parts import only `opening`. It imports the rest, with its libraries, once a setting asks for HTTP.
"""
