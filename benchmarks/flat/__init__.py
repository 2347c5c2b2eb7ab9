"""Is the speed the same however much the database holds, and for however long? Each question gets a chart for the docs."""
