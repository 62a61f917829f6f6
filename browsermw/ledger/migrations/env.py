"""What Alembic runs for each migration: on the connection that ``upgrade`` was given, in its transaction."""

from alembic import context

from browsermw.ledger.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
context.run_migrations()
