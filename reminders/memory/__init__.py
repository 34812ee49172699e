"""The ports in memory, for tests, simulations and `tocsin up --in-memory`. Nothing is durable.

`store` is the store, `coordination` the coordination; both pass the contract suites of the real
adapters, are deterministic and start no thread. Start at `reminders.ports`.
"""
