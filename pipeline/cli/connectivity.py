"""The first contact with a broker, before Spark starts: a wrong address or topic fails within seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from barnabas.client.cluster.topics import Topics
from barnabas.client.errors import BrokerUnavailableError, UnknownTopicError
from barnabas.client.waiting.patience import Retries
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.servers import Servers

CONNECTIVITY_TIMEOUT_MS: Final = 5_000
"""How long a command tries to reach a broker before it gives up; the broker may still be starting."""

_HINT: Final = "Is the address right, and is the broker running?"


def check_connectivity(servers: Servers, topics: Collection[str] = ()) -> None:
    """Asks a broker for these topics.

    Raises `PipelineError` if no broker answers within `CONNECTIVITY_TIMEOUT_MS` or a topic does not exist,
    and the other errors of `Topics.find`.
    """
    asyncio.run(_check(servers, topics))


async def _check(servers: Servers, names: Collection[str]) -> None:
    cluster = servers.cluster()
    topics = Topics(cluster, Retries(give_up_ms=CONNECTIVITY_TIMEOUT_MS))
    try:
        async with asyncio.timeout(CONNECTIVITY_TIMEOUT_MS / 1000):
            await topics.find(names)
    except TimeoutError as error:
        seconds = CONNECTIVITY_TIMEOUT_MS // 1000
        raise PipelineError(f"servers: {servers} did not answer within {seconds} seconds. {_HINT}") from error
    except BrokerUnavailableError as error:
        raise PipelineError(f"servers: {str(error).rstrip('.')}. {_HINT}") from error
    except UnknownTopicError as error:
        raise PipelineError(f"There is no topic {', '.join(error.names)} at {servers}.") from error
    finally:
        topics.close()
        cluster.close()
        await asyncio.sleep(0)  # the connections' transports close in the loop's next round
