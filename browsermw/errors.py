"""Every error that browsermw raises, in the user's words.

The docstring of a class is its default message. Its first line says whether anything left the browser; the
rest says what to do next. Callers pass a more exact message where they know more; nothing here does I/O.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class BrowsermwError(Exception):
    """Something went wrong in browsermw; the message says whether anything left the browser.

    Attributes:
        facts: What is known about the case (ids, URL, times), safe to log and to serialise.
    """

    def __init__(self, message: str | None = None, *, facts: Mapping[str, object] | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)))
        self.facts: dict[str, object] = dict(facts or {})


class EffectRefused(BrowsermwError):
    """Nothing left the browser: the gate refused a request with a side effect.

    The message names the request and the rule that refused it.
    """


class InFlightDuplicate(EffectRefused):
    """Nothing left the browser this time: the same request was sent before and is unanswered.

    Wait for its answer, or settle it with a verdict, before it is sent again.
    """


class OutcomeUnknown(BrowsermwError):
    """A request left the browser and its outcome is unknown: do not repeat the action.

    Look the outcome up at the application, then record a verdict. Where it replaces a Playwright
    ``TimeoutError`` it is one too (``browsermw.hooks.timeouts``), so that existing clauses still match.
    """


class Quarantined(EffectRefused):
    """Nothing left the browser: the run has effects in doubt and is read-only until they are settled.

    See ``run.quarantined`` or ``browsermw quarantine list``; settle each with a verdict.
    """


class Held(EffectRefused):
    """Nothing left the browser: this runtime is held for maintenance and admits no work.

    The work keeps its place and its attempt count. Try again after ``browsermw reopen``.
    """


class RunOwned(BrowsermwError):
    """Nothing left the browser: a live process owns this run.

    The message names the owner. Wait with ``mw.run(run_id, wait_s=...)`` or let the owner finish.
    """


class RuntimeOwned(RunOwned):
    """Nothing left the browser: a live process already uses this runtime name on this ledger.

    Give each process its own runtime name, or end the other process first.
    """


class Superseded(EffectRefused):
    """Nothing left the browser: another process took this run over and this one may not write any more.

    Stop this agent; the run goes on where the new owner is.
    """


class IdentityMismatch(BrowsermwError):
    """Nothing left the browser: the page is signed in as another user than the run's.

    Sign in as the run's user, or start a run of its own for the other one.
    """


class WireTooWeak(BrowsermwError):
    """Nothing left the browser: the context cannot be guarded as strongly as the policy asks.

    Start the browser with ``mw.launch_options()``, or lower ``policy.minimum_wire`` knowingly.
    """


class LedgerUnavailable(EffectRefused):
    """Nothing left the browser: the ledger cannot be written, so no request may go out.

    Restore the database (space, permissions, connection) and run the agent again; it loses nothing.
    """


class LedgerCorrupt(BrowsermwError):
    """Nothing left the browser: a record in the ledger is damaged, so recovery stops here.

    The message names the record. Restore the ledger from a backup; do not let the agent go on.
    """


class IllegalTransition(BrowsermwError):
    """Nothing was changed: the phase tables do not have this step.

    A fault of browsermw, or two writers on one record; please report it with the message.
    """


class BrowserMissing(BrowsermwError):
    """Nothing left the browser, because none was started: this machine has no Chromium that answers.

    Run ``browsermw install-browser``, or name an executable in ``BROWSERMW_BROWSER``.
    """
