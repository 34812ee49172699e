"""What a process is told from outside: the environment first, then a TOML file, then the defaults.

`settings`   start here: every setting with its unit and default, frozen, and `load_settings`.
`channels`   those of the channels; `operator`: what he is told; the rest is in `settings`.
`limits`     what callers may ask for; `agreed`, what all processes must agree about.
`problems`   what is said about a wrong value: the variable, the value, what is right.
`report`     what `tocsin config` shows.
`durations`  `30s`, `2m`, `500ms`, `PT30S`: also what the command line reads.
`sources`    where values come from, and `read_config_file` for those who need no more.

Services read their settings once, in `reminders.process.run_service`, and hand on the values, not
the settings. The package imports nothing of Tocsin but the pure rules of addresses, URLs, secrets
and limits; this module stays empty so that the command line can have `durations` without paying for
pydantic.
"""
