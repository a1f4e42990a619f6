"""Values of the public interface (options, receipts, authors), and the names in a directory."""
