"""What a process says about itself: logs, metrics, readiness.

`logs`      structlog: one constant event name and snake_case keys, JSON lines on stderr.
`metrics`   OpenTelemetry instruments, exposed to Prometheus. Ids never become labels.
`endpoint`  HTTP: /live, /ready (503 with the reasons), /metrics.

`reminders.process` sets all three up; a service only calls `structlog.get_logger()` and
`opentelemetry.metrics.get_meter("tocsin.<service>")`. Any part of Tocsin may be observed, none
imports this package but `process`, the command line and tests.
"""
