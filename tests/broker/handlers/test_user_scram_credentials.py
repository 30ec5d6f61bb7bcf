"""AlterUserScramCredentials and DescribeUserScramCredentials: mechanisms are shown, credentials are not."""

from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.schema.describe_user_scram_credentials.v0.request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)

from barnabas.broker.handlers.alter_user_scram_credentials import handle_alter_user_scram_credentials
from barnabas.broker.handlers.describe_user_scram_credentials import handle_describe_user_scram_credentials
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import i8, i32
from tests.broker.handlers.admin_broker import AdminBroker, ask

Result = tuple[str, ErrorCode, list[tuple[int, int]]]


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=i8(mechanism), iterations=i32(iterations), salt=b"s", salted_password=b"p"
    )


async def alter(
    broker: AdminBroker,
    *upsertions: ScramCredentialUpsertion,
    deletions: tuple[ScramCredentialDeletion, ...] = (),
) -> list[tuple[str, ErrorCode]]:
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    response = await ask(broker, handle_alter_user_scram_credentials, request)
    return [(one.user, one.error_code) for one in response.results]


async def describe(broker: AdminBroker, *users: str) -> list[Result]:
    asked = tuple(UserName(name=user) for user in users) or None
    response = await ask(
        broker, handle_describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=asked)
    )
    return [
        (one.user, one.error_code, [(info.mechanism, info.iterations) for info in one.credential_infos])
        for one in response.results
    ]


async def test_the_mechanisms_of_a_user_are_described_until_they_are_deleted(broker: AdminBroker) -> None:
    assert await alter(broker, upsertion("a", 2, 8192)) == [("a", ErrorCode.none)]
    assert await alter(broker, upsertion("a", 1)) == [("a", ErrorCode.none)]
    assert await describe(broker) == [("a", ErrorCode.none, [(1, 4096), (2, 8192)])]
    deletion = ScramCredentialDeletion(name="a", mechanism=i8(2))
    assert await alter(broker, deletions=(deletion,)) == [("a", ErrorCode.none)]
    assert await describe(broker, "a") == [("a", ErrorCode.none, [(1, 4096)])]


async def test_unknown_and_duplicate_users_are_refused(broker: AdminBroker) -> None:
    await alter(broker, upsertion("a"))
    assert await describe(broker, "a", "b", "a") == [
        ("a", ErrorCode.duplicate_resource, []),
        ("b", ErrorCode.resource_not_found, []),
    ]


async def test_each_user_has_its_own_error(broker: AdminBroker) -> None:
    assert await alter(broker, upsertion("a"), upsertion("b", iterations=5)) == [
        ("a", ErrorCode.none),
        ("b", ErrorCode.unacceptable_credential),
    ]
