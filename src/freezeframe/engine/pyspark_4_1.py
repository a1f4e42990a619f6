"""What is only true for PySpark 4.1."""

HADOOP = "3.4.2"
"""The release of Hadoop that it brings; PySpark 4.2 and 4.3 bring 3.5.0."""
SDK = "2.29.52"
"""The release of Amazon's SDK that this Hadoop was built with."""
