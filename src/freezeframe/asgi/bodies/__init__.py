"""Bodies of requests: JSON, raw bytes, base64."""
