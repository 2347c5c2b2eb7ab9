"""The handlers of the routes, by subject. Their signatures say what they take and return: `route_table` and OpenAPI read them."""
