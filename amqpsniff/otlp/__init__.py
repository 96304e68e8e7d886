"""Journeys of messages as spans of OpenTelemetry."""
