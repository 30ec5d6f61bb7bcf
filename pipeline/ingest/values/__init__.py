"""Values decoded by a schema file: JSON Schema, Avro or Protobuf, into typed columns (extra
`[schemas]`).

`options` names the file, `recipe` makes a decoder from it, `decoding` runs the decoders in Spark's workers.
The decoders are `json_schema`, `avro` and `protobuf`: each maps its types to Arrow's, and the bytes of one
value to Python objects of such a type.
"""
