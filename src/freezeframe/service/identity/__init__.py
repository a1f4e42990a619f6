"""Who asks: API keys, people, sessions, identity providers."""
