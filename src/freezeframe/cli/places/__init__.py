"""Where a command finds its tenant, stream and rows; options that commands share."""
