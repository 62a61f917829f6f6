"""Place one order, and be safe to kill at any moment: run it again until it says that the order is done.

Usage: python order_sync.py SHOP_URL LEDGER_URL RUN_ID
"""

import sys

from playwright.sync_api import sync_playwright

import browsermw


def main(shop: str, ledger: str, run_id: str) -> int:
    with browsermw.open(ledger, runtime=f"order-{run_id}") as mw, sync_playwright() as p, mw.run(run_id) as run:
        if run.quarantined:
            for doubt in run.quarantined:
                print(f"in doubt: {doubt.quarantine_id} {doubt.reason}")
            print("Look the order up at the shop, then: browsermw quarantine resolve ID --verdict … --note …")
            return 1
        if run.resume is not None and any(action.effects for action in run.resume.done):
            print("The order is placed already; nothing to send.")
            return 0
        browser = p.chromium.launch(**mw.launch_options(headless=True))
        page = run.wrap(browser.new_context()).new_page()
        page.goto(f"{shop}/shop")
        page.click("#send")
        print("Placed:", page.inner_text("#reference"))
        browser.close()
        return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
