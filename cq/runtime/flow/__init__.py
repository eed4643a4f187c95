"""How rows flow: admission, batches, parcels, splitting and merging, Arrow in and out."""
