"""Reading the rows of data files, with deletion vectors applied."""
