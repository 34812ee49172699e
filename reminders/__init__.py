"""The domain of Tocsin, shared by its services: what a reminder is and when it rings.

Ports (`reminders.ports`) say what the domain needs; `storage`, `coordination` and `memory` are
their adapters, wired only in each service's `__main__`. `localstack` runs the real servers on a
developer's machine. Every service may import this package, and it imports none of them. Start
reading at `reminders.model`.
"""
