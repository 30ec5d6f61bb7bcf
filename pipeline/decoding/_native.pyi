"""The native decoder has the interface of its twin."""

from barnabas.pipeline.decoding._python import RecordDecoder as RecordDecoder
