"""The handlers of the routes, by subject. Their signatures define what they take and return; OpenAPI is made from them."""
