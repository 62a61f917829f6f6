"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

MOMENT = sa.String(32).with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table('runtimes',
        sa.Column('runtime', sa.Text(), nullable=False),
        sa.Column('state', sa.Text(), nullable=False),
        sa.Column('generation', sa.Integer(), nullable=False),
        sa.Column('boot_id', sa.Text(), nullable=True),
        sa.Column('changed_at', MOMENT, nullable=False),
        sa.PrimaryKeyConstraint('runtime', name=op.f('pk_runtimes'))
    )
    op.create_table('transitions',
        sa.Column('transition_id', SERIAL, autoincrement=True, nullable=False),
        sa.Column('entity', sa.Text(), nullable=False),
        sa.Column('entity_id', sa.Text(), nullable=False),
        sa.Column('run_id', sa.Text(), nullable=True),
        sa.Column('old', sa.Text(), nullable=True),
        sa.Column('new', sa.Text(), nullable=False),
        sa.Column('at', MOMENT, nullable=False),
        sa.Column('boot_id', sa.Text(), nullable=True),
        sa.Column('fence', sa.BigInteger(), nullable=True),
        sa.Column('reason', sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint('transition_id', name=op.f('pk_transitions'))
    )
    op.create_index(op.f('ix_transitions_run_id'), 'transitions', ['run_id'], unique=False)
    op.create_table('boots',
        sa.Column('boot_id', sa.Text(), nullable=False),
        sa.Column('runtime', sa.Text(), nullable=False),
        sa.Column('host', sa.Text(), nullable=False),
        sa.Column('pid', sa.BigInteger(), nullable=False),
        sa.Column('labels', sa.JSON(), nullable=False),
        sa.Column('started_at', MOMENT, nullable=False),
        sa.Column('lease_until', MOMENT, nullable=True),
        sa.Column('closed_at', MOMENT, nullable=True),
        sa.ForeignKeyConstraint(['runtime'], ['runtimes.runtime'], name=op.f('fk_boots_runtime')),
        sa.PrimaryKeyConstraint('boot_id', name=op.f('pk_boots'))
    )
    op.create_index(op.f('ix_boots_runtime'), 'boots', ['runtime'], unique=False)
    op.create_table('runs',
        sa.Column('run_id', sa.Text(), nullable=False),
        sa.Column('phase', sa.Text(), nullable=False),
        sa.Column('runtime', sa.Text(), nullable=False),
        sa.Column('boot_id', sa.Text(), nullable=True),
        sa.Column('fence', sa.BigInteger(), nullable=False),
        sa.Column('wire', sa.Text(), nullable=True),
        sa.Column('labels', sa.JSON(), nullable=False),
        sa.Column('action_count', sa.Integer(), nullable=False),
        sa.Column('checkpoint_count', sa.Integer(), nullable=False),
        sa.Column('head_digest', sa.Text(), nullable=False),
        sa.Column('last_action_seq', sa.Integer(), nullable=True),
        sa.Column('external_request_id', sa.Text(), nullable=True),
        sa.Column('claimed_at', MOMENT, nullable=False),
        sa.Column('created_at', MOMENT, nullable=False),
        sa.Column('changed_at', MOMENT, nullable=False),
        sa.ForeignKeyConstraint(['boot_id'], ['boots.boot_id'], name=op.f('fk_runs_boot_id')),
        sa.ForeignKeyConstraint(['runtime'], ['runtimes.runtime'], name=op.f('fk_runs_runtime')),
        sa.PrimaryKeyConstraint('run_id', name=op.f('pk_runs'))
    )
    op.create_index(op.f('ix_runs_runtime'), 'runs', ['runtime'], unique=False)
    op.create_table('actions',
        sa.Column('action_id', sa.Text(), nullable=False),
        sa.Column('run_id', sa.Text(), nullable=False),
        sa.Column('seq', sa.Integer(), nullable=False),
        sa.Column('kind', sa.Text(), nullable=False),
        sa.Column('method', sa.Text(), nullable=False),
        sa.Column('target', sa.Text(), nullable=False),
        sa.Column('url', sa.Text(), nullable=False),
        sa.Column('phase', sa.Text(), nullable=False),
        sa.Column('wire', sa.Text(), nullable=False),
        sa.Column('reads_only', sa.Boolean(), nullable=False),
        sa.Column('fence', sa.BigInteger(), nullable=False, comment='the fence under which it was planned'),
        sa.Column('planned_at', MOMENT, nullable=False),
        sa.Column('closed_at', MOMENT, nullable=True),
        sa.Column('reason', sa.Text(), nullable=True),
        sa.Column('doubt_at', MOMENT, nullable=True, comment='set when the action itself, not one of its effects, came into doubt'),
        sa.Column('doubt_reason', sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(['run_id'], ['runs.run_id'], name=op.f('fk_actions_run_id')),
        sa.PrimaryKeyConstraint('action_id', name=op.f('pk_actions')),
        sa.UniqueConstraint('run_id', 'seq', name=op.f('uq_actions_run_id_seq'))
    )
    op.create_index(op.f('ix_actions_phase_run_id'), 'actions', ['phase', 'run_id'], unique=False)
    op.create_table('checkpoints',
        sa.Column('run_id', sa.Text(), nullable=False),
        sa.Column('seq', sa.Integer(), nullable=False),
        sa.Column('action_seq', sa.Integer(), nullable=False),
        sa.Column('moment', sa.Text(), nullable=False),
        sa.Column('url', sa.Text(), nullable=False),
        sa.Column('dom_hash', sa.Text(), nullable=True),
        sa.Column('dom_note', sa.Text(), nullable=True),
        sa.Column('identity_state', sa.Text(), nullable=False),
        sa.Column('identity_hash', sa.Text(), nullable=True),
        sa.Column('identity_hint', sa.Text(), nullable=True),
        sa.Column('last_action_seq', sa.Integer(), nullable=True),
        sa.Column('external_request_id', sa.Text(), nullable=True),
        sa.Column('at', MOMENT, nullable=False),
        sa.Column('previous', sa.Text(), nullable=False),
        sa.Column('digest', sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(['run_id'], ['runs.run_id'], name=op.f('fk_checkpoints_run_id')),
        sa.PrimaryKeyConstraint('run_id', 'seq', name=op.f('pk_checkpoints'))
    )
    op.create_table('verdicts',
        sa.Column('verdict_id', SERIAL, autoincrement=True, nullable=False),
        sa.Column('quarantine_id', sa.Text(), nullable=False),
        sa.Column('run_id', sa.Text(), nullable=False),
        sa.Column('verdict', sa.Text(), nullable=False),
        sa.Column('source', sa.Text(), nullable=False),
        sa.Column('note', sa.Text(), nullable=False),
        sa.Column('external_request_id', sa.Text(), nullable=True),
        sa.Column('settles', sa.Boolean(), nullable=False),
        sa.Column('at', MOMENT, nullable=False),
        sa.ForeignKeyConstraint(['run_id'], ['runs.run_id'], name=op.f('fk_verdicts_run_id')),
        sa.PrimaryKeyConstraint('verdict_id', name=op.f('pk_verdicts'))
    )
    op.create_index(op.f('ix_verdicts_quarantine_id'), 'verdicts', ['quarantine_id'], unique=False)
    op.create_table('effects',
        sa.Column('effect_id', sa.Text(), nullable=False),
        sa.Column('run_id', sa.Text(), nullable=False),
        sa.Column('action_id', sa.Text(), nullable=False),
        sa.Column('action_seq', sa.Integer(), nullable=False),
        sa.Column('ordinal', sa.Integer(), nullable=False),
        sa.Column('phase', sa.Text(), nullable=False),
        sa.Column('method', sa.Text(), nullable=False),
        sa.Column('url', sa.Text(), nullable=False),
        sa.Column('fingerprint', sa.Text(), nullable=False),
        sa.Column('channel', sa.Text(), nullable=False),
        sa.Column('chain', sa.Text(), nullable=False, comment='first effect of its chain of redirect hops'),
        sa.Column('outcome', sa.Text(), nullable=True),
        sa.Column('status', sa.Integer(), nullable=True),
        sa.Column('external_request_id', sa.Text(), nullable=True),
        sa.Column('location', sa.Text(), nullable=True),
        sa.Column('dispatched_at', MOMENT, nullable=False),
        sa.Column('acknowledged_at', MOMENT, nullable=True),
        sa.Column('acknowledged_fence', sa.BigInteger(), nullable=True, comment='the fence that saw the answer; 0 where a verdict said it'),
        sa.Column('reason', sa.Text(), nullable=True),
        sa.Column('doubt_at', MOMENT, nullable=True),
        sa.Column('doubt_reason', sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(['action_id'], ['actions.action_id'], name=op.f('fk_effects_action_id')),
        sa.ForeignKeyConstraint(['run_id'], ['runs.run_id'], name=op.f('fk_effects_run_id')),
        sa.PrimaryKeyConstraint('effect_id', name=op.f('pk_effects')),
        sa.UniqueConstraint('action_id', 'ordinal', name=op.f('uq_effects_action_id_ordinal'))
    )
    op.create_index(op.f('ix_effects_phase_run_id'), 'effects', ['phase', 'run_id'], unique=False)
    op.create_index(op.f('ix_effects_run_id_fingerprint'), 'effects', ['run_id', 'fingerprint'], unique=False)


def downgrade() -> None:
    op.drop_table('effects')
    op.drop_table('verdicts')
    op.drop_table('checkpoints')
    op.drop_table('actions')
    op.drop_table('runs')
    op.drop_table('boots')
    op.drop_table('transitions')
    op.drop_table('runtimes')
