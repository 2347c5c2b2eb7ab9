"""Jobs to test Tenure with. Uses public names only, as any app would."""
