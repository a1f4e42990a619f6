"""What every part of the service uses: conditions of a request, cursors, timestamps, buffers of a response."""
