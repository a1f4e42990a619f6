"""Files of rows in each format, as they are read and written."""
