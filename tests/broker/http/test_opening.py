"""HTTP with the operations of a program that embeds the broker; and without HTTP, nothing of it is loaded."""

from __future__ import annotations

import subprocess
import sys
from http import HTTPStatus
from pathlib import Path

from httpx import AsyncClient

from barnabas.broker.http.opening import open_http
from barnabas.broker.http.routes import Call, Operation, without_parameters
from tests.conformance.harness import open_lab

LIBRARIES = ("h11", "msgspec", "opentelemetry", "prometheus_client", "starlette", "uvicorn")
PROGRAM = f"""
import sys
import barnabas.cli.commands.serve
import barnabas.cli.process.serving
import barnabas.broker.config.loading
print(sorted(set({LIBRARIES!r}) & set(sys.modules)))
"""


def test_serving_loads_no_library_of_http_or_of_spans() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_program_that_embeds_the_broker_adds_operations(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-the-kit")
    resets: list[str] = []

    async def reset(call: Call) -> None:
        resets.append(call.client)

    def more_operations() -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/kit/reset",
                handler=without_parameters(reset),
                name="reset",
                summary="Reset the broker",
                tag="kit",
                status=HTTPStatus.NO_CONTENT,
            ),
        )

    async with open_lab(http__listener="0", http__token__file=str(token)) as lab:
        http = await open_http(lab.broker, lab.broker.config.http, more_operations)
        assert http is not None
        async with AsyncClient(base_url=f"http://{http.address}") as client:
            assert (await client.post("/kit/reset", json={})).status_code == 401
            headers = {"Authorization": "Bearer a-token-of-the-kit"}
            assert (await client.post("/kit/reset", json={}, headers=headers)).status_code == 204
            described = (await client.get("/openapi.json")).json()["paths"]
        await http.close()
    assert resets == ["127.0.0.1"]
    assert described["/kit/reset"]["post"]["operationId"] == "reset"
