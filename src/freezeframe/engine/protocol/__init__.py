"""What a row engine does for a stream, and engines that pass questions on."""
