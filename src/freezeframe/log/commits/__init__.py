"""One commit file: its content, its digest, its commitInfo, and how it is put into the log."""
