"""Workflow engines on PostgreSQL beside Tenure: steps that do nothing, and workflows of one step."""
