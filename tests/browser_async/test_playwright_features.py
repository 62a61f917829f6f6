"""Playwright's own features in the async flavour: as without us, and each POST on record once."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest_asyncio

from benchmarks.browsers import bare_options
from tests.browser_kit import comparable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from playwright.async_api import Browser, BrowserContext, Page, Playwright, Route

    from browsermw import Run
    from tests.browser_kit import Journal
    from tests.shop_site import Shop

    Make = Callable[..., Awaitable[BrowserContext]]
    Work = Callable[[Make, Path], Awaitable[Any]]
    Both = Callable[[Work], Awaitable[Any]]

POST = """path => fetch(path, {method: "POST", body: '{"item":"book"}'}).then(
    async answer => [answer.status, await answer.text()], error => error.message)"""


@pytest_asyncio.fixture(loop_scope="session")
async def both(
    playwright: Playwright, browser: Browser, run: Run, journal: Journal, shop: Shop, tmp_path: Path
) -> AsyncIterator[Both]:
    """Does some work, in which one effect arrives, in a bare and in a guarded browser, and compares."""
    bare = await playwright.chromium.launch(**bare_options())

    async def on_side(name: str, work: Work) -> tuple[Any, list[dict[str, Any]]]:
        shop.reset()
        folder = tmp_path / name
        folder.mkdir()
        made: list[BrowserContext] = []

        async def make(**options: Any) -> BrowserContext:
            context = await (browser if name == "guarded" else bare).new_context(**options)
            made.append(context)
            return run.wrap(context) if name == "guarded" else context

        seen = await work(make, folder)
        for context in made:
            await context.close()
        return seen, comparable(shop.arrivals())

    async def on_both(work: Work) -> Any:
        seen, arrived = await on_side("bare", work)
        guarded_seen, guarded_arrived = await on_side("guarded", work)
        assert guarded_seen == seen
        assert guarded_arrived == arrived
        assert sum(arrival["method"] == "POST" for arrival in arrived) == 1
        assert len([effect for effect in journal.settled() if effect.status is not None]) == 1
        return seen

    yield on_both
    await bare.close()


async def order(page: Page, address: str) -> str:
    await page.goto(address)
    await page.click("#send")
    return await page.inner_text("#reference")


async def test_routes_change_fulfil_and_fall_back(both: Both, shop: Shop) -> None:
    async def work(make: Make, _: Path) -> list[Any]:
        context = await make()
        page = await context.new_page()

        async def changed(route: Route) -> None:
            await route.continue_(post_data='{"item":"pear"}', headers={**route.request.headers, "x-changed": "yes"})

        async def passed_on(route: Route) -> None:
            await route.fallback()

        async def made_up(route: Route) -> None:
            await route.fulfill(status=299, body="made up")

        await context.route("**/api/checkout", changed)
        await page.route("**/api/checkout", passed_on)
        await page.route("**/api/never", made_up)
        await page.goto(f"{shop.url}/checkout")
        return [await page.evaluate(POST, path) for path in ("/api/never", "/api/checkout")]

    seen = await both(work)
    assert (seen[0], seen[1][0]) == ([299, "made up"], 201)
    [arrival] = shop.arrivals("/api/checkout", "POST")
    assert (arrival["body"], arrival["headers"]["x-changed"]) == ('{"item":"pear"}', "yes")


async def test_a_har_is_recorded_and_served_from(both: Both, shop: Shop) -> None:
    async def work(make: Make, folder: Path) -> list[Any]:
        har = folder / "shop.har"
        recording = await make(record_har_path=har)
        seen: list[Any] = [await order(await recording.new_page(), f"{shop.url}/form")]
        await recording.close()
        entries = json.loads(har.read_text())["log"]["entries"]
        seen += [(it["request"]["method"], it["request"]["url"], it["response"]["status"]) for it in entries]
        context = await make()
        await context.route_from_har(har, not_found="abort")
        page = await context.new_page()
        await page.goto(f"{shop.url}/form")
        return [*seen, await page.title()]

    assert ("POST", f"{shop.url}/order", 303) in await both(work)


async def test_a_trace_holds_the_requests(both: Both, shop: Shop) -> None:
    async def work(make: Make, folder: Path) -> list[Any]:
        context = await make()
        await context.tracing.start(snapshots=True)
        await order(await context.new_page(), f"{shop.url}/shop")
        await context.tracing.stop(path=folder / "trace.zip")
        with zipfile.ZipFile(folder / "trace.zip") as zipped:
            found = [json.loads(line)["snapshot"] for line in zipped.read("trace.network").splitlines()]
        return [(it["request"]["method"], it["request"]["url"], it["response"]["status"]) for it in found]

    assert ("POST", f"{shop.url}/order", 303) in await both(work)


async def test_a_state_is_stored_and_taken_up(both: Both, shop: Shop) -> None:
    async def work(make: Make, folder: Path) -> list[Any]:
        first = await make()
        page = await first.new_page()
        await page.goto(f"{shop.url}/login?user=alice")
        kept = await first.storage_state(path=folder / "state.json")
        await first.close()
        page = await (await make(storage_state=folder / "state.json")).new_page()
        return [kept, await order(page, f"{shop.url}/shop"), await page.inner_text("#user")]

    assert (await both(work))[1:] == ["ORD-0001", "alice"]


async def test_a_streamed_answer_comes_chunk_by_chunk(both: Both, shop: Shop) -> None:
    async def work(make: Make, _: Path) -> list[str]:
        page = await (await make()).new_page()
        await page.goto(f"{shop.url}/checkout")
        await page.evaluate("""async () => {
            const answer = await fetch("/api/stream?chunks=3", {method: "POST", body: "x"});
            window.reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        }""")
        chunks = []
        for _number in range(3):
            assert shop.send_chunk("/api/stream") == 1
            chunks.append(await page.evaluate("reader.read().then(it => it.value)"))
        return [*chunks, await page.evaluate("reader.read().then(it => it.done)")]

    assert await both(work) == ["chunk 0\n", "chunk 1\n", "chunk 2\n", True]
