"""browsermw makes browser agents safe to interrupt.

It wraps Playwright contexts, writes down what is about to leave the browser before it leaves, and after a crash
tells what happened, what did not, and what nobody can know without asking the application.
"""

from browsermw.errors import (
    BrowserMissing,
    BrowsermwError,
    EffectRefused,
    Held,
    IdentityMismatch,
    IllegalTransition,
    InFlightDuplicate,
    LedgerCorrupt,
    LedgerUnavailable,
    OutcomeUnknown,
    Quarantined,
    RunOwned,
    RuntimeOwned,
    Superseded,
    WireTooWeak,
)
from browsermw.models import Action, Checkpoint, Effect, Quarantine, ResumeReport, RuntimeStatus, Verdict, Verification
from browsermw.policy import Identity, Policy
from browsermw.run import Run
from browsermw.runtime import Runtime, open

__version__ = "0.1.0"

__all__ = [
    "Action",
    "BrowserMissing",
    "BrowsermwError",
    "Checkpoint",
    "Effect",
    "EffectRefused",
    "Held",
    "Identity",
    "IdentityMismatch",
    "IllegalTransition",
    "InFlightDuplicate",
    "LedgerCorrupt",
    "LedgerUnavailable",
    "OutcomeUnknown",
    "Policy",
    "Quarantine",
    "Quarantined",
    "ResumeReport",
    "Run",
    "RunOwned",
    "Runtime",
    "RuntimeOwned",
    "RuntimeStatus",
    "Superseded",
    "Verdict",
    "Verification",
    "WireTooWeak",
    "open",
]
