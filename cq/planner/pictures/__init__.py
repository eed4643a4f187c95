"""Plans as pictures: where boxes stand, and the files that show them."""
