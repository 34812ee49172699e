"""Domain values → messages of `tocsin.v1`. Pure.

`reminders`    a view as a `Reminder`, complete or as batches answer it.
`definitions`  the caller's part of it, with the defaults that were filled in.
`ledger`       occurrences, deliveries, attempts.
`previews`     what a schedule would do.
"""
