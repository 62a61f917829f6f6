"""Looking at a page for a checkpoint: address, DOM state, identity.

The desk looks before and after each action. A look is bounded in time and never raises: a page that cannot be
read is recorded as "not available", because a checkpoint must never break the agent's click.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from browsermw.ledger.contract import Sighting
from browsermw.page.identity import Identity, identity_from_cookie, identity_from_selector, identity_hash
from browsermw.page.probe import PageProbe, probe_expression, read_probe, repeat_expression, visiting_expression
from browsermw.page.redact import redact_url
from browsermw.wire.cdp import CdpError
from browsermw.wire.worlds import in_next_turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from browsermw.boundary import Seen
    from browsermw.policy import Policy
    from browsermw.scopes import GuardedRun
    from browsermw.wire.engine import Engine


class Sight:
    """Looks at pages under one policy.

    Args:
        policy: What identifies the user, what is left out of the hash, how long to wait.
        key: The ledger's key; identities are stored hashed with it.

    Attributes:
        visiting: What the hooks evaluate in the page's own world, where they have to look.
    """

    def __init__(self, policy: Policy, key: bytes) -> None:
        self._policy = policy
        self._key = key
        selector = policy.identity.selector if policy.identity else None
        asked = (policy.ignore_selectors, selector, sorted(policy.volatile_fields))
        self._expression, self._repeated = probe_expression(*asked), repeat_expression(*asked)
        self.visiting = visiting_expression(*asked)

    async def look(
        self, run: GuardedRun, page_id: str | None, *, next_turn: bool = False, seen: Seen | None = None
    ) -> Sighting:
        """What is on the page now.

        Args:
            run: The run that the page belongs to.
            page_id: Target id; ``None`` gives an empty sighting.
            next_turn: Look in the page's next turn, when what its scripts have put off until then has begun.
            seen: What the hooks saw there already.
        """
        browser = run.browser_of(page_id)
        if browser is None or page_id is None:
            return self.address(run, page_id)
        if seen is not None:
            if seen.failed is not None:
                return self._blind(run, page_id, seen.failed)
            probe = read_probe(seen.value)
            return self._sighting(probe, self._identity(probe, seen.cookies))
        try:
            async with asyncio.timeout(self._policy.probe_timeout_s):
                return await self._look(browser, page_id, next_turn=next_turn)
        except TimeoutError:
            return self._blind(run, page_id, f"no answer within {self._policy.probe_timeout_s:g} s")
        except CdpError as error:
            return self._blind(run, page_id, str(error))

    def address(self, run: GuardedRun, page_id: str | None) -> Sighting:
        """The page's address alone, without asking the page."""
        browser = run.browser_of(page_id)
        target = browser.targets.targets.get(page_id or "") if browser is not None else None
        return Sighting(url=redact_url(target.url) if target is not None and target.url else "")

    def _blind(self, run: GuardedRun, page_id: str, reason: str) -> Sighting:
        state = "undeclared" if self._policy.identity is None else "unreadable"
        return Sighting(url=self.address(run, page_id).url, dom_note=reason[:200], identity_state=state)

    async def _look(self, browser: Engine, page_id: str, *, next_turn: bool) -> Sighting:
        asked = (self._expression, self._repeated)
        first, repeated = map(in_next_turn, asked) if next_turn else asked
        probe = read_probe(await browser.evaluate(page_id, first, repeated=repeated))
        cookies = await browser.cookies(page_id) if self.asks_cookies else ()
        return self._sighting(probe, self._identity(probe, cookies))

    @property
    def asks_cookies(self) -> bool:
        """Whether a look needs the page's cookies."""
        return self._policy.identity is not None and self._policy.identity.cookie is not None

    def _identity(self, probe: PageProbe, cookies: Sequence[Mapping[str, object]]) -> Identity | None:
        declared = self._policy.identity
        if declared is None:
            return None
        return (
            identity_from_cookie(cookies, declared.cookie)
            if declared.cookie is not None
            else identity_from_selector(probe)
        )

    def _sighting(self, probe: PageProbe, identity: Identity | None) -> Sighting:
        text = identity.text if identity is not None else None
        return Sighting(
            url=redact_url(probe.url) if probe.url else "",
            dom_hash=probe.dom_hash,
            dom_note=probe.not_available,
            identity_state=identity.state if identity is not None else "undeclared",
            identity_hash=identity_hash(self._key, text) if text else None,
            identity_hint=identity.hint if identity is not None and text else None,
        )
