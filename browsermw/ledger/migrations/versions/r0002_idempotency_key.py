"""The key under which the application can look an effect up."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("effects", sa.Column("idempotency_key", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("effects", "idempotency_key")
