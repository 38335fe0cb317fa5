"""Measure the cost of gateway hooks without sockets: CPU per request, and records per second and core.

    python benchmarks/gateway_hooks.py [--quick] [--rounds N]

One request and its response at a time pass through a gateway's relay: as bytes only, with a hook that does
nothing, decoded, and with renamed topics. Batches of 20,000 records of 100 bytes pass through hook functions
that request the records as a table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from harness import arguments, print_table
from penstock.gateway.hooks import Client, ClientRequest, Hook, address_header, masked, tenant
from penstock.gateway.hooks.batches import changed_records
from penstock.gateway.hooks.chain import Hooks
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.records.batch import encode_batch

RELAYS = Path(__file__).resolve().parents[1] / "tests" / "gateway" / "relays.py"
spec = spec_from_file_location("relays", RELAYS)
assert spec is not None
assert spec.loader is not None
relays: Any = module_from_spec(spec)
"""The module `relays` of the tests, which runs a gateway's relay without sockets."""
spec.loader.exec_module(relays)

RECORDS = 20_000
VALUE = b'{"number":"%012d","name":"somebody","city":"x","amount":12345,"note":"aaaaaaaaaaaaaaaaaaaaaaa"}'

ASK = relays.request(
    ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=-1)])],
    ),
    5,
)
ANSWER = relays.response(
    ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name="t", partitions=[ListOffsetsPartitionResponse()])]
    ),
    5,
)


def look(asked: ClientRequest) -> None:
    """Run a request hook that does nothing."""


def decode(asked: ClientRequest) -> None:
    """Run a request hook that causes the request to be decoded."""
    assert asked.message is not None


def nothing(asked: ClientRequest, answer: Any) -> None:
    """Run a response hook that does nothing; the gateway decodes the response for it."""


HOOKS = {
    "no hook": (),
    "a hook for another API": (Hook(("Produce",), on_request=look),),
    "looked at": (Hook(("ListOffsets",), on_request=look),),
    "decoded both ways": (Hook(("ListOffsets",), on_request=decode, on_response=nothing),),
    "a prefix for a tenant": (tenant("blue."),),
}

BATCHES = {
    "the table alone": Hook(on_batches=lambda batch: batch.table),
    "address_header": address_header(),
    "masked": masked("t", "number"),
}


def best(rounds: int, work: Callable[[], None]) -> float:
    """Return the CPU seconds of the fastest round."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def microseconds(hooks: tuple[Hook, ...], count: int, rounds: int) -> float:
    """Return the CPU microseconds that a request and its response cost with these hooks."""
    world = relays.World(hooks=Hooks(hooks))
    world.client_sends(ASK)
    world.broker_sends(ANSWER)
    asked, answered = memoryview(ASK), memoryview(bytearray(ANSWER))

    def work() -> None:
        for _ in range(count):
            world.relay.client_bytes(asked)
            world.relay.upstream_bytes(answered)
        world.client.taken()
        world.broker.taken()

    return best(rounds, work) / count * 1e6


def records_a_second(hook: Hook, rounds: int) -> float:
    """Return how many records of a Fetch response per CPU second pass through a hook."""
    records = encode_batch([(None, VALUE % number, (), number) for number in range(RECORDS)])
    asked = ClientRequest(1, 11, 11, Client("10.0.0.7", 1, "", "", "", 1), lambda: None)
    assert hook.on_batches is not None
    functions = [hook.on_batches]
    return RECORDS / best(rounds, lambda: changed_records(records, asked, "t", 0, functions) and None)


def main() -> None:
    options = arguments("Hooks of a gateway", rounds=5)
    count = 2_000 if options.quick else 20_000
    rows = [[name, f"{microseconds(hooks, count, options.rounds):.1f}"] for name, hooks in HOOKS.items()]
    print_table("Requests", ["ListOffsets 5 and its response", "CPU µs"], rows)
    batches = [[name, f"{records_a_second(hook, options.rounds):,.0f}"] for name, hook in BATCHES.items()]
    print_table("Records", ["batches of 20,000 records", "records/s"], batches)


if __name__ == "__main__":
    main()
