"""Ways of running a stage: each one file, registered by what it is made of and how workers serve it."""
