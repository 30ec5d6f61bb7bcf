"""Values decoded by a schema file: JSON Schema, Avro or Protobuf, into typed columns (extra
`[schemas]`).

`options` says which file, `decoding` runs the decoders in Spark's workers, `json_schema`, `avro` and
`protobuf` are the decoders: each maps its types to Arrow's and one value's bytes to Python objects of such
a type.
"""
