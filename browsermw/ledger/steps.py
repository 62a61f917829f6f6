"""How a phase changes: checked by the tables, guarded in the update, logged in the same transaction.

Called by every file here that changes a phase; none of them writes a phase in another way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, insert, update

from browsermw.errors import IllegalTransition
from browsermw.ledger import schema
from browsermw.ledger.prepared import Prepared
from browsermw.protocol.phases import check_step

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from enum import StrEnum

    from sqlalchemy import Connection

KEYS = {
    "action": schema.actions.c.action_id,
    "effect": schema.effects.c.effect_id,
    "run": schema.runs.c.run_id,
    "runtime": schema.runtimes.c.runtime,
}
PHASES = {
    "action": schema.actions.c.phase,
    "effect": schema.effects.c.phase,
    "run": schema.runs.c.phase,
    "runtime": schema.runtimes.c.state,
}

STEPS_TAKEN = "browsermw_steps"
"""Key in the connection's ``info`` under which the store finds the lines that it announces after the commit."""

_INSERT_LINE = Prepared(insert(schema.transitions).inline())
_UPDATES: Mapping[str, Prepared] = {
    entity: Prepared(update(key.table).where(key == bindparam("key_"), PHASES[entity] == bindparam("old_")))
    for entity, key in KEYS.items()
}
"""Guarded updates; which columns they set follows from the values that they are given."""


@dataclass
class Steps:
    """The steps of one transaction: who takes them, and the lines that ``write_log`` will write.

    Attributes:
        conn: The open transaction.
        at: The moment of all its lines.
        run_id: The run, where there is one.
        boot_id: The boot that takes the steps; ``None`` for a person or a reconciler.
        fence: The boot's fence.
    """

    conn: Connection
    at: datetime
    run_id: str | None = None
    boot_id: str | None = None
    fence: int | None = None
    _lines: list[dict[str, object]] = field(default_factory=list)

    def enter(self, entity: str, entity_id: str, new: StrEnum, why: str | None = None) -> None:
        """Check and log that a record enters the ledger; the caller inserts it."""
        label = check_step(entity, None, new)
        self._note(entity, entity_id, None, new, why or label)

    def move(
        self,
        entity: str,
        entity_id: str,
        old: StrEnum,
        new: StrEnum,
        why: str | None = None,
        *,
        changed: Mapping[str, object] | None = None,
    ) -> None:
        """Take one step: check it, update the row where it still has the old phase, log it.

        Args:
            entity: ``action``, ``effect``, ``run`` or ``runtime``.
            entity_id: Key of its row.
            old: The phase that was read.
            new: The phase to write.
            why: For the log; the table's own words where it is ``None``.
            changed: Other columns to set with it.

        Raises:
            IllegalTransition: Not in the table, or the row has another phase by now.
        """
        label = check_step(entity, old, new)
        marks = {"key_": entity_id, "old_": str(old), PHASES[entity].name: str(new), **(changed or {})}
        if _UPDATES[entity].run(self.conn, marks) != 1:
            message = f"Nothing was changed: {entity} {entity_id} is no longer {old}, so it cannot become {new}."
            raise IllegalTransition(message, facts={"kind": entity, "id": entity_id, "from": str(old), "to": str(new)})
        self._note(entity, entity_id, old, new, why or label)

    def write_log(self) -> None:
        """Write the collected lines; the last thing in each transaction that took steps."""
        # One by one: psycopg's executemany ends with a Flush, after which PostgreSQL 18 no longer counts the
        # connection as idle, so that a stopped process would keep its row locks for ever (measured).
        for line in self._lines:
            _INSERT_LINE.run(self.conn, line)
        self.conn.info.setdefault(STEPS_TAKEN, []).extend(self._lines)
        self._lines = []

    def _note(self, entity: str, entity_id: str, old: StrEnum | None, new: StrEnum, why: str) -> None:
        self._lines.append(
            {
                "entity": entity,
                "entity_id": entity_id,
                "run_id": self.run_id,
                "old": None if old is None else str(old),
                "new": str(new),
                "at": self.at,
                "boot_id": self.boot_id,
                "fence": self.fence,
                "reason": why,
            },
        )
