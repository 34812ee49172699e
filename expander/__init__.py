"""The expander: after each fire, the next occurrence of the rule.

One message of `fires` for each claimed entry that recurs. For each: the record, then the one
occurrence after the furthest live one, "whatever the clock says": a repeat, a second expander or a
late message computes the same, finds it written, and only marks the entry expanded. After downtime
it passes over what the catch-up policy skips, at once and with one row in the ledger.

`service`  the consumer.  `expansion`  one expansion. Start there.
"""
