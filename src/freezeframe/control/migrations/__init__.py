"""The steps from each version of the control database to the next; Alembic runs them."""
