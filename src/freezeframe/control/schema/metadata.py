"""SQLAlchemy metadata of all tables, with names of constraints that migrations rely on.

Moments are whole milliseconds since 1970 by the database's clock: both databases compare them as numbers.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Integer, MetaData

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite assigns row numbers only in a column declared INTEGER.
sequence_type = BigInteger().with_variant(Integer(), "sqlite")
