"""Tests that a client runs at most one background task for each key at a time."""

from __future__ import annotations

import asyncio

from penstock.client.background_loop import KeyedTasks


def test_a_key_has_one_task_at_a_time() -> None:
    async def run() -> None:
        begun: list[str] = []
        finished = asyncio.Event()
        go_on = asyncio.Event()
        tasks = KeyedTasks(asyncio.get_running_loop(), finished.set)

        async def work(name: str) -> None:
            begun.append(name)
            await go_on.wait()

        tasks.start("metadata", work("first"))
        tasks.start("metadata", work("dropped"))
        tasks.start(1, work("another key"))
        go_on.set()
        await finished.wait()
        while len(begun) < 2:
            await asyncio.sleep(0)
        assert begun == ["first", "another key"]
        await asyncio.sleep(0)
        tasks.start("metadata", work("after the first"))
        await asyncio.sleep(0)
        assert begun[-1] == "after the first"
        await tasks.close()

    asyncio.run(run())


def test_closing_cancels_what_is_under_way_and_starts_no_more() -> None:
    async def run() -> None:
        ended: list[str] = []
        tasks = KeyedTasks(asyncio.get_running_loop(), lambda: None)

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

        tasks.start("key", work())
        await asyncio.sleep(0)
        await tasks.close()
        tasks.start("key", work())
        await asyncio.sleep(0)
        assert ended == ["cancelled"]

    asyncio.run(run())
