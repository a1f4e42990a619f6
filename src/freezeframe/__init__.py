"""What an integration keeps for each of its tenants between two sync jobs."""
