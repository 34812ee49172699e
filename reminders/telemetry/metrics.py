"""Metrics by OpenTelemetry, read by Prometheus."""

from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


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
