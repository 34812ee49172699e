"""`python -m reminders.cli`, for children that must not depend on PATH."""

from reminders.cli import main

main()
