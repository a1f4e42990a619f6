"""One commit file: its content, its digest, its commitInfo, and its atomic creation."""
