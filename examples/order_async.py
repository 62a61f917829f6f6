"""Place one order, and be safe to kill at any moment: run it again until it says that the order is done.

Usage: python order_async.py SHOP_URL LEDGER_URL RUN_ID
"""

import asyncio
import sys

from playwright.async_api import async_playwright

import browsermw


async def main(shop: str, ledger: str, run_id: str) -> int:
    async with (
        browsermw.open(ledger, runtime=f"order-{run_id}") as mw,
        async_playwright() as p,
        mw.run(run_id) as run,
    ):
        if run.quarantined:
            for doubt in run.quarantined:
                print(f"in doubt: {doubt.quarantine_id} {doubt.reason}")
            print("Look the order up at the shop, then: browsermw quarantine resolve ID --verdict … --note …")
            return 1
        if run.resume is not None and any(action.effects for action in run.resume.done):
            print("The order is placed already; nothing to send.")
            return 0
        browser = await p.chromium.launch(**mw.launch_options(headless=True))
        page = await run.wrap(await browser.new_context()).new_page()
        await page.goto(f"{shop}/shop")
        await page.click("#send")
        print("Placed:", await page.inner_text("#reference"))
        await browser.close()
        return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:4])))
