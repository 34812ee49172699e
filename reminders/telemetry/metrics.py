"""Metrics by OpenTelemetry, read by Prometheus."""

from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

LATENESS_BUCKETS_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0),
)
"""Boundaries for lateness and durations, from a millisecond to an hour."""


def configure_metrics(*, service: str, instance: str) -> MeterProvider:
    """Instruments made before or after this call are exposed. Once a process.

    Shut the provider down at the end of the process.
    """
    provider = meter_provider(REGISTRY, service=service, instance=instance)
    metrics.set_meter_provider(provider)
    return provider


def meter_provider(registry: CollectorRegistry, *, service: str, instance: str) -> MeterProvider:
    """A provider that exposes its instruments in that registry, without scope labels."""
    return MeterProvider(
        metric_readers=[
            PrometheusMetricReader(registry=registry, prefix="", scope_info_enabled=False)
        ],
        resource=Resource.create({"service.name": service, "service.instance.id": instance}),
    )


def exposition(registry: CollectorRegistry = REGISTRY) -> bytes:
    """All metrics in Prometheus's text format."""
    return generate_latest(registry)
