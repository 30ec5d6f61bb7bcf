"""AlterClientQuotas (key 49, KIP-546): the messages of version 1; those of the request are called so."""

from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, OpData
from kio.schema.alter_client_quotas.v1.request import EntityData as RequestEntityData
from kio.schema.alter_client_quotas.v1.request import EntryData as RequestEntryData
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse, EntityData, EntryData

__all__ = [
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "EntityData",
    "EntryData",
    "OpData",
    "RequestEntityData",
    "RequestEntryData",
]
