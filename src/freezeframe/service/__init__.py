"""What the REST service does, without HTTP: who may do what to which tenant, and the doing of it."""
