"""Who asks: API keys, sessions, identity providers."""
