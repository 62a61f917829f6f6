"""The channel suite: every way to send, fired on a real browser, counted at the server, held against the ledger.

``table`` lists the channels, ``expected`` what each should come to, ``measuring`` fires and judges, ``engines`` opens
what they are fired on. The tests and ``browsermw doctor`` run it; nothing else imports it, since it loads Playwright.
"""

from browsermw.testing.channels.engines import OPENERS, opened
from browsermw.testing.channels.expected import expected
from browsermw.testing.channels.measuring import Measured, measure
from browsermw.testing.channels.place import Place
from browsermw.testing.channels.states import Engine, State
from browsermw.testing.channels.table import BY_NAME, CHANNELS, Channel

__all__ = [
    "BY_NAME", "CHANNELS", "OPENERS", "Channel", "Engine", "Measured", "Place", "State", "expected", "measure", "opened"
]  # fmt: skip
