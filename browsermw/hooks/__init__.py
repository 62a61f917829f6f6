"""hooks (see docs/explanation/architecture.md)."""
