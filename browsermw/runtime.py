"""``Runtime``: a named agent process identity, its ledger, its browsers and its runs.

What users open first. It owns the thread with the loop, gives launch arguments, claims runs, and settles doubt by
hand. Opening reads the runtime's state before anything else (a hold is honoured before work is recovered), and
closing shuts the relays before it lets go of a browser, so that nothing held can leave.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import TYPE_CHECKING, Any, Self, get_args
from urllib.parse import urlsplit

from browsermw.desk import Desk
from browsermw.errors import BrowsermwError, LedgerUnavailable, WireTooWeak
from browsermw.events import Events
from browsermw.hooks.install import install
from browsermw.hooks.launched import on_launch
from browsermw.ids import new_id
from browsermw.keyfile import read_or_make_key
from browsermw.ledger import open_ledger
from browsermw.ledger.contract import Boot
from browsermw.loop_thread import LoopThread
from browsermw.models import Verdict, VerdictName
from browsermw.policy import Policy
from browsermw.run import Run
from browsermw.sight import Sight
from browsermw.wire.chromium import GuardedBrowser
from browsermw.wire.launch import free_port, launch_arguments
from browsermw.wire.relay import Relay
from browsermw.wire.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from browsermw.ledger.contract import Ledger
    from browsermw.models import Quarantine, RuntimeStatus

NAME_CHARACTER_LIMIT = 200
LEASE_MARGIN = 0.8
"""A record whose release comes later than this part of the lease after its renewal is not released."""

log = Events("browsermw")


def open(url: str | None = None, *, runtime: str, policy: Policy | None = None) -> Runtime:  # noqa: A001
    """Name a runtime on a ledger; enter it with ``with`` or ``async with``.

    Args:
        url: SQLAlchemy URL of the ledger (``sqlite:///agent.db``, ``postgresql://…``); by default SQLite in the
            user's state folder.
        runtime: Name of this agent process identity, the same at each start; 1 to 200 characters.
        policy: The rules; by default from ``browsermw.toml`` and ``BROWSERMW_…`` variables.

    Raises:
        ValueError: The name is empty, too long or holds control characters.
    """
    return Runtime(url, runtime=runtime, policy=policy)


class Runtime:
    """A boot of a runtime; see ``browsermw.open``. Nothing leaves a browser before it is entered.

    Attributes:
        name: The runtime's name.
        boot_id: This start of it.
        policy: The rules.
    """

    FOR_HOOKS = ("browsers_for", "enter_run", "leave_run", "desk", "submit", "ledger_call", "ledger_work")
    """Members that other modules of the package use and users do not."""

    def __init__(self, url: str | None, *, runtime: str, policy: Policy | None) -> None:
        self.name = checked_name("runtime", runtime)
        self.boot_id = new_id("b")
        self.policy = policy or Policy()
        self._url = url
        self._browsers: dict[int, GuardedBrowser] = {}
        self._attached: list[GuardedBrowser] = []
        self._runs: list[Run] = []
        self._renewed_at_s = time.monotonic()
        self._ledger: Ledger | None = None
        self._thread: LoopThread | None = None
        self._desk: Desk | None = None

    def __enter__(self) -> Self:
        """Open the ledger and register this boot.

        Raises:
            LedgerUnavailable: The ledger cannot be opened; the message names the URL and the way out.
            LedgerCorrupt: The ledger is damaged.
            RuntimeOwned: A live process uses this runtime name.
        """
        if self._thread is not None:
            raise BrowsermwError("Nothing left the browser: this runtime is open already.")
        # Before the first launch: `chromium.launch(**mw.launch_options())` looks `launch` up before the options.
        install()
        ledger = open_ledger(self._url, lease_s=self.policy.lease_s)
        try:
            key = read_or_make_key(ledger.key_path)
            boot = Boot(self.boot_id, self.name, socket.gethostname(), os.getpid())
            self._renewed_at_s = time.monotonic()
            ledger.open_boot(boot)
        except BaseException:
            ledger.close()
            raise
        self._ledger = ledger
        self._thread = LoopThread(f"browsermw-{self.name}", ledger.writer_count)
        self._desk = Desk(ledger, self._thread.in_executor, self.policy, Sight(self.policy, key), self._lease_holds)
        if ledger.lease_needed:
            self._thread.submit(self._keep_lease())
        log.info("runtime_opened", runtime=self.name, boot=self.boot_id)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        """See ``__enter__``; the ledger is opened outside the caller's loop."""
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End this boot in order: relays shut, browsers let go, lock dropped. Does not close your browsers."""
        if self._thread is None or self._ledger is None:
            return
        try:
            for run in list(self._runs):
                try:
                    run.abandon()
                except BrowsermwError as error:  # its relays must be shut all the same; the next claim sweeps it
                    log.error("run_not_left", run=run.run_id, cause=str(error))
            self._thread.submit(self._close_browsers()).result()
        finally:
            self._thread.close()
            self._thread = None
            try:
                self._ledger.close_boot(self.boot_id)
            except LedgerUnavailable as error:
                log.warning("boot_not_closed", cause=str(error))
            self._ledger.close()
            log.info("runtime_closed", runtime=self.name, boot=self.boot_id)

    # Browsers.

    def launch_options(self, **playwright_launch_kwargs: Any) -> dict[str, Any]:
        """Arguments for ``chromium.launch`` or ``launch_persistent_context`` that put the browser behind the gate.

        Call it once for each browser. Your ``args`` and ``proxy`` are kept; the proxy is chained behind the relay.

        Args:
            **playwright_launch_kwargs: What you would give to Playwright.

        Raises:
            ValueError: ``args`` or ``proxy`` holds what cannot be guarded; names it.
        """
        proxy = playwright_launch_kwargs.pop("proxy", None)
        # An empty proxy is a mistake; to pass it over would send the traffic another way than was meant.
        relay = Relay(upstream=Upstream.from_playwright(proxy) if proxy is not None else None)
        port = free_port()
        self.submit(relay.start()).result()
        try:
            options = launch_arguments(playwright_launch_kwargs, port=port, relay_server=relay.server)
        except ValueError:
            self.submit(relay.close()).result()
            raise
        browser = self._browsers[port] = self.submit(self._guard(port, relay)).result()
        on_launch(port, lambda: self.submit(browser.tried()))
        return options

    async def _guard(self, port: int, relay: Relay) -> GuardedBrowser:
        browser = GuardedBrowser(self.desk, self.policy, endpoint=f"http://127.0.0.1:{port}", relay=relay)
        browser.on_lost(lambda: self.desk.browser_lost(browser))
        relay.on_first_connection(browser.begin)
        return browser

    def attach(self, cdp_url: str) -> None:
        """Guard a browser that somebody else started (wire ``attached``: no relay, weaker promises).

        Connect Playwright to the same browser with ``connect_over_cdp``, then wrap its contexts as usual. Needs
        ``policy.minimum_wire`` of ``attached`` or lower.

        Args:
            cdp_url: ``http://127.0.0.1:9222`` or the browser's ``ws://`` URL.

        Raises:
            WireTooWeak: The policy asks for more, or no browser answers there.
        """
        if self.policy.minimum_wire == "sealed":
            raise WireTooWeak(
                "Nothing left the browser: policy.minimum_wire is 'sealed', and an attached browser has no relay, so "
                "that a dying process would let go of what it held. Use mw.launch_options(), or set "
                "minimum_wire='attached'."
            )
        if urlsplit(cdp_url).scheme not in {"http", "https", "ws", "wss"}:
            raise ValueError(f"cdp_url: {cdp_url!r} is no http:// or ws:// URL")
        self._attached.append(self.submit(self._attach(cdp_url.rstrip("/"))).result())

    async def _attach(self, cdp_url: str) -> GuardedBrowser:
        browser = GuardedBrowser(self.desk, self.policy, endpoint=cdp_url, relay=None)
        browser.on_lost(lambda: self.desk.browser_lost(browser))
        await browser.ready()
        for lost in [it for it in self._attached if it.gate_is_gone]:
            self._attached.remove(lost)
            await lost.close()
        return browser

    def browsers_for(self, port: int | None) -> list[GuardedBrowser]:
        """The guarded browsers that a context may belong to.

        Args:
            port: Debugging port of the browser that the context was made in, where the hooks know it.
        """
        if port is not None and port in self._browsers:
            return [self._browsers[port]]
        return [*self._attached, *(browser for browser in self._browsers.values() if browser.attached)]

    async def _close_browsers(self) -> None:
        for browser in [*self._browsers.values(), *self._attached]:
            await browser.close()

    # Runs.

    def run(self, run_id: str, *, labels: Mapping[str, str] | None = None, wait_s: float = 0.0) -> Run:
        """A logical task with a durable id; enter it with ``with`` or ``async with`` to claim it.

        Args:
            run_id: From the work, never from the attempt (``invoice-8472``); 1 to 200 characters.
            labels: For your own filters; stored with the run.
            wait_s: How long to wait for a live owner to leave; seconds.

        Raises:
            ValueError: The id is empty, too long or holds control characters.
        """
        return Run(self, checked_name("run_id", run_id), dict(labels or {}), wait_s)

    def enter_run(self, run: Run) -> None:
        """Note an open run, so that closing the runtime finds it."""
        self._runs.append(run)

    def leave_run(self, run: Run) -> None:
        """Forget a run that was left."""
        if run in self._runs:
            self._runs.remove(run)

    def resolve(self, quarantine_id: str, *, verdict: VerdictName, note: str, source: str = "agent") -> Quarantine:
        """Settle something in doubt; the run goes on once nothing is in doubt any more.

        Args:
            quarantine_id: From ``run.quarantined``.
            verdict: ``committed``, ``not_committed`` (it may be sent again) or ``unknown`` (adds evidence only).
            note: The evidence in words; required.
            source: Who or what concluded it.

        Raises:
            KeyError: No such quarantine.
            ValueError: The note is empty or the verdict is none of the three.
            IllegalTransition: It was settled before; the message names the verdict that stands.
        """
        concluded = make_verdict(verdict, note, source)
        return self.ledger_call("resolve", quarantine_id, concluded)  # type: ignore[no-any-return]

    def status(self) -> RuntimeStatus:
        """This runtime as the ledger knows it: state, generation, active runs, doubts."""
        found: list[RuntimeStatus] = self.ledger_call("runtimes")
        return next(status for status in found if status.runtime == self.name)

    # For ``run`` and the hooks.

    @property
    def desk(self) -> Desk:
        """The desk of this boot."""
        if self._desk is None or self._thread is None:
            raise BrowsermwError(
                "Nothing left the browser: enter the runtime first: `with browsermw.open(...) as mw:`."
            )
        return self._desk

    def submit(self, work: Any) -> Any:
        """Start a coroutine on the runtime's loop; a ``concurrent.futures.Future``."""
        if self._thread is None:
            work.close()
            raise BrowsermwError(
                "Nothing left the browser: the runtime is not open; enter it first: `with browsermw.open(...) as mw:`."
            )
        return self._thread.submit(work)

    def ledger_call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Make one ledger call on the ledger's threads and wait for it."""
        return self.submit(self.ledger_work(name, *args, **kwargs)).result()

    async def ledger_work(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The same on the runtime's loop."""
        assert self._thread is not None
        call = getattr(self._ledger, name)
        return await self._thread.in_executor(lambda: call(*args, **kwargs))

    def _lease_holds(self) -> bool:
        if self._ledger is None or not self._ledger.lease_needed:
            return True
        return time.monotonic() - self._renewed_at_s < self.policy.lease_s * LEASE_MARGIN

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(self.policy.lease_s / 4)
            started_at_s = time.monotonic()
            try:
                await self.ledger_work("renew", self.boot_id)
                self._renewed_at_s = started_at_s
            except BrowsermwError as error:
                log.warning("lease_not_renewed", runtime=self.name, cause=str(error))


def checked_name(what: str, name: str) -> str:
    """A runtime's name or a run's id, checked.

    Raises:
        ValueError: It is empty, over 200 characters, or holds control characters; names the value.
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{what}: {name!r} is empty; give it a name from the work, such as 'invoice-8472'")
    if len(name) > NAME_CHARACTER_LIMIT:
        raise ValueError(f"{what}: {name[:40]!r}… has {len(name)} characters; at most {NAME_CHARACTER_LIMIT}")
    if any(not letter.isprintable() for letter in name):
        raise ValueError(f"{what}: {name!r} holds control characters; use printable text")
    return name


def make_verdict(verdict: str, note: str, source: str) -> Verdict:
    """A verdict, checked.

    Raises:
        ValueError: The verdict is none of the three, or the note is empty.
    """
    if verdict not in get_args(VerdictName):
        raise ValueError(f"verdict: {verdict!r} is none of {', '.join(get_args(VerdictName))}")
    if not note.strip():
        raise ValueError("note: say what you saw, and where; a verdict without evidence is a guess")
    return Verdict.model_validate({"verdict": verdict, "source": source, "note": note})
