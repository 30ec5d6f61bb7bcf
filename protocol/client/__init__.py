"""The client's side of the protocol: encodes requests, decodes responses (KIP-35, KIP-482).

`api` is the counterpart of the broker's `codec`. `consumer_apis`, `producer_apis` and `admin_apis` list the
APIs that the clients of this project use, with the versions in use. Messages that carry or acknowledge
records have encoders and decoders here; they share the request bodies of `decode` and the results of
`encode`. The broker does not use this package.
"""
