"""A system Chromium that starts fewer processes beside a test's page.

It loads two pages into every window for its address bar, which nobody sees in a headless browser, and keeps a renderer
in store. Without them a page costs 0.37 s of processor time instead of 0.88 s (two cores, one page after the other).
Playwright's own headless shell has no address bar.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from browsermw.wire.browser_find import ENVIRONMENT_NAME, find_browser

if TYPE_CHECKING:
    import pytest

# Of several --disable-features Chromium takes the last one alone, and Playwright has one of its own.
_SCRIPT = """#!/bin/sh
features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess
for argument in "$@"; do
  case $argument in --disable-features=*) features="$features,${argument#*=}" ;; esac
done
exec %s "$@" "--disable-features=$features"
"""


def use_lean_browser(config: pytest.Config) -> None:
    """Have every browser of this test session started so, where it is the system's."""
    found = find_browser()
    if found is None or found.source != "system" or os.name != "posix":
        return
    folder = tempfile.TemporaryDirectory(prefix="browsermw-lean-")
    script = Path(folder.name, "chromium")
    script.write_text(_SCRIPT % shlex.quote(str(found.path)), encoding="utf-8")
    script.chmod(0o755)
    os.environ[ENVIRONMENT_NAME] = str(script)
    config.add_cleanup(folder.cleanup)
