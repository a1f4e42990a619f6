"""Values of the public interface: update options, receipts, row counts, request context."""
