"""What a route knows of its request: who asks, and what they may reach."""
