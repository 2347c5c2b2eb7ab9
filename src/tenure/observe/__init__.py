"""Traces and metrics: OpenTelemetry (`otel`), and Prometheus for workers (`prometheus`)."""
