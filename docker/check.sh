#!/bin/sh
# Starts the broker and both consumers of compose.yml, restarts the broker, kills it and starts it again while they work,
# and exits with 0 if every order was delivered and acknowledged. make compose runs it.
# COMPOSE is the command of another engine, such as "podman compose".
set -eu

folder=$(dirname "$0")
# A project, a volume and ports of its own: it may run beside the example.
export KAFKA_PORT="${KAFKA_PORT:-29092}" HTTP_PORT="${HTTP_PORT:-28080}"
compose() {
    ${COMPOSE:-docker compose} --file "$folder/compose.yml" --project-name barnabas-check --profile test "$@"
}

remove() {
    code=$?
    [ "$code" -eq 0 ] || compose logs --no-color --tail 50 || true
    compose down --volumes --timeout 10
    exit "$code"
}

compose build broker consumer python-consumer
trap remove EXIT
compose up --detach --wait broker consumer python-consumer
compose run --rm check send 1 500
compose restart broker
compose run --rm check send 501 1000
compose kill --signal SIGKILL broker
compose up --detach --wait broker
compose run --rm check send 1001 1500
compose run --rm check verify 1500
