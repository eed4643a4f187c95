"""The reader of each format: one file each, named by its entry in `cq/connectors/formats.py`."""
