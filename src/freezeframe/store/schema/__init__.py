"""Columns of a stream: types, how they widen, how two are compared, and what Delta's schema says (pure)."""
