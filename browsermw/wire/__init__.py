"""wire (see docs/explanation/architecture.md)."""
