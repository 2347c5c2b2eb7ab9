"""The product's statements as steps of a schedule, each with what it would do if it were alone."""
