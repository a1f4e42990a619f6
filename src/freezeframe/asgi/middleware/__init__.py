"""What every request goes through before its route."""
