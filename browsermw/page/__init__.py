"""What is seen on a page at a checkpoint: pure text in, frozen records out.

The wire evaluates what this package builds and hands back what the browser answered; nothing here does I/O
or knows Playwright, the wire or the ledger.
"""
