"""Tests of the exactly-once sink in a simulation with crashes at any step, timeouts and zombies.

Each row is written once, and no transaction stays open.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Any

from for_each import for_each
from penstock.errors import PenstockError
from spark_sink_world import World, rows_of, run_query

BATCHES = 6
SEEDS = int(os.environ.get("PENSTOCK_SINK_SEEDS", "150"))


async def history(seed: int) -> World:
    """Run a query several times, each run killed or left as a zombie, then once undisturbed.

    Return the `World` that simulated the cluster.
    """
    world = World(seed)
    scheduler = asyncio.create_task(world.schedule())
    zombies = []
    for _ in range(world.dice.randrange(1, 8)):
        run = asyncio.create_task(run_query(world, BATCHES))
        for _ in range(world.dice.randrange(1, 400)):
            await asyncio.sleep(0)
            if run.done():
                break
        if not run.done() and world.dice.random() < 0.5:
            zombies.append(run)
            continue
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    world.is_faulty = False
    # Zombies and the last run compete; drivers that were fenced stop, and Spark's user starts the query
    # again.
    for _ in range(20):
        try:
            await run_query(world, BATCHES)
            break
        except PenstockError:
            continue
    results = await asyncio.gather(*zombies, return_exceptions=True)
    assert all(each is None or isinstance(each, PenstockError) for each in results), results
    # What a zombie has left open is gone with the next batch.
    await run_query(world, BATCHES + 1)
    await settled(world)
    scheduler.cancel()
    return world


async def settled(world: World) -> None:
    """Wait until speculative task attempts that are still running have ended."""
    rest = {each for each in asyncio.all_tasks() if each.get_coro().__name__ == "attempt"}
    await asyncio.gather(*rest, return_exceptions=True)


def expected() -> Counter[Any]:
    return Counter(row for batch in range(BATCHES + 1) for row in rows_of(batch))


@for_each(range(SEEDS))
def test_every_row_counts_once_wherever_drivers_and_executors_end(seed: int) -> None:
    world = asyncio.run(history(seed))
    assert Counter(world.visible()) == expected()


def test_the_simulation_meets_what_it_is_for() -> None:
    """In these simulations, transactions time out after the decision to commit.

    Some must be written again as copies, and decided batches are completed later.
    """
    worlds = [asyncio.run(history(seed)) for seed in range(40)]
    assert sum(world.timeouts for world in worlds) > 20
    assert sum(world.copies for world in worlds) > 3
