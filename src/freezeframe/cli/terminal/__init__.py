"""What commands print and ask: text, JSON, progress, confirmations, exit codes."""
