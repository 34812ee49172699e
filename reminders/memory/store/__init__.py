"""The store in memory, with the semantics of the real one: the same cells, stamps and answers.

`memory` is where to start; `cells` holds the one rule about stamps, the rest is one file for each
group of ports. What it leaves out: nothing expires, and every operation is atomic, except where a
hook steps in. The hook is awaited at named points: before each operation (`due.put`), after it has
taken effect (`due.put.done`), and between the tables of a create (`records.create.due`). It may
wait, raise `StoreUnavailable`, or let others run meanwhile; without one nothing here ever waits.
"""

from reminders.memory.store.memory import MemoryStore
from reminders.memory.store.points import Hook

__all__ = ["Hook", "MemoryStore"]
