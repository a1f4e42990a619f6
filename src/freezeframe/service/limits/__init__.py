"""How often and how much: rates, bytes a minute, bytes stored."""
