"""Where Playwright's calls meet the runtime: the table of methods that are actions, and two thin hooks.

The only package, with ``wire/routed.py`` and ``testing``, that knows Playwright.
"""
