"""Tenure in the frameworks of your application."""
