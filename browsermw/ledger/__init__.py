"""The durable store: what the rest of browsermw asks is in ``contract``; SQLAlchemy lives here only."""

from browsermw.ledger.opening import open_ledger

__all__ = ["open_ledger"]
