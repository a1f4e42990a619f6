"""Reading the rows of data files, without those that deletion vectors remove."""
