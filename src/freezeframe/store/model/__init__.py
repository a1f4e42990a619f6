"""Values that callers give and get: the options of an update, receipts, counts of rows, a request."""
