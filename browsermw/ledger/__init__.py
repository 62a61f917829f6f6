"""The durable ledger: schema, store, dialects and migrations. SQLAlchemy lives here only."""
