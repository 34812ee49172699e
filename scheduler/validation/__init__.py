"""Requests → domain values. Collects everything that is wrong, then raises `InvalidRequest` once.

The limits are those that `protos/tocsin/v1` states; each reader below returns a value that is only
meaningful as long as no problem was noted. Normal form: defaults filled in, rules rewritten, sets
sorted, so that two requests that mean the same hash the same.

`requests`  the entry points, one for each request message.
`topics`    the same for subscribers.
`names`, `windows`, `changes`  what many of them have: which reminder, which page, which version.

The collector of problems, and what is read from plain texts, are in `reminders.lifecycle`
(`problems`, `texts`, `recurrences`): the command line previews rules by the same.
"""

from scheduler.validation.requests import Validator

__all__ = ["Validator"]
