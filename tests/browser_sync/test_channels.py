"""Side doors of a page: beacons, keepalive, workers of three kinds. Each is on record before the server sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from tests.browser_kit import Journal
    from tests.shop_site import Shop

POST = "fetch('/api/checkout', {method: 'POST', body: 'item=worker'})"
WORKER = f"{POST}.then(answer => postMessage(answer.status))"
SHARED = f"onconnect = event => {POST}.then(answer => event.ports[0].postMessage(answer.status))"
SERVICE = f"""
addEventListener('install', () => skipWaiting());
addEventListener('activate', event => event.waitUntil(clients.claim()));
addEventListener('message', event => event.waitUntil({POST}));
"""
CHANNELS = {
    "beacon": "navigator.sendBeacon('/api/checkout', new Blob(['item=x'], {type: 'text/plain'}))",
    "keepalive": "fetch('/api/checkout', {method: 'POST', body: 'item=x', keepalive: true}).then(() => 1)",
    "xhr": """new Promise(done => {
        const asked = new XMLHttpRequest();
        asked.open('POST', '/api/checkout'); asked.onload = done; asked.send('item=x');
    }).then(() => 1)""",
    "sync xhr": """(() => {
        const asked = new XMLHttpRequest(); asked.open('POST', '/api/checkout', false); asked.send('item=x');
    })()""",
    "put": "fetch('/api/checkout', {method: 'PUT', body: 'item=x'}).then(() => 1)",
    "delete": "fetch('/api/checkout', {method: 'DELETE'}).then(() => 1)",
    "worker": f"""new Promise(done => {{
        const script = {WORKER!r}.replace('/api', location.origin + '/api');
        new Worker(URL.createObjectURL(new Blob([script]))).onmessage = done;
    }}).then(() => 1)""",
    "worker script": """new Promise(done => {
        new Worker('/made/worker.js').onmessage = done;
    }).then(() => 1)""",
    "shared worker": """new Promise(done => {
        new SharedWorker('/made/shared.js').port.onmessage = done;
    }).then(() => 1)""",
    "ping": """(() => {
        const link = document.createElement('a');
        link.href = '#there'; link.ping = '/api/checkout'; link.textContent = 'x';
        document.body.append(link); link.click();
    })()""",
}


def serve_scripts(page: Page) -> None:
    scripts = {"worker.js": WORKER, "shared.js": SHARED, "service.js": SERVICE}

    def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        headers = {"Service-Worker-Allowed": "/"}
        route.fulfill(body=scripts[name], content_type="text/javascript", headers=headers)

    page.context.route("**/made/*.js", answer)


@pytest.mark.parametrize("channel", CHANNELS)
def test_each_channel_is_on_record_before_it_arrives(page: Page, shop: Shop, journal: Journal, channel: str) -> None:
    serve_scripts(page)
    page.goto(f"{shop.url}/checkout")
    page.evaluate(CHANNELS[channel])
    [arrival] = shop.wait_for("/api/checkout", method=None)
    [effect] = journal.settled()
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]
    assert str(effect.phase) in {"ACKNOWLEDGED", "OBSERVED"}
    assert effect.run_id == journal.actions()[0].run_id


def test_a_beacon_at_the_end_of_a_page_is_on_record_before_it_arrives(page: Page, shop: Shop, journal: Journal) -> None:
    page.goto(f"{shop.url}/telemetry")
    page.click("#leave")
    [arrival] = shop.wait_for("/api/beacon")
    [effect] = journal.settled()
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]
    assert str(effect.phase) in {"ACKNOWLEDGED", "OBSERVED"}


def test_a_service_worker_is_on_record_before_it_arrives(shop: Shop, page: Page, journal: Journal) -> None:
    serve_scripts(page)
    page.goto(f"{shop.url}/checkout")
    page.evaluate(
        """async () => {
            const made = await navigator.serviceWorker.register('/made/service.js', {scope: '/'});
            await navigator.serviceWorker.ready;
            (made.active || made.waiting || made.installing).postMessage('go');
        }"""
    )
    [arrival] = shop.wait_for("/api/checkout")
    [effect] = journal.settled()
    assert effect.dispatched_at.isoformat() < arrival["arrived_at"]
