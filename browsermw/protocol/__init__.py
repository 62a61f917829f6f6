"""protocol (see docs/explanation/architecture.md)."""
