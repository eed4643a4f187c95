"""Ways of running a stage: one file each, registered with its structures and how workers serve it."""
