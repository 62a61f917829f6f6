"""page (see docs/explanation/architecture.md)."""
