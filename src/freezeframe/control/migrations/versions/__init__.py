"""One file to a step, ``NNNN_<what>.py``; the numbers are the versions."""
