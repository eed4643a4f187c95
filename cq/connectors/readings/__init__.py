"""What reads each format: a file each, named by its entry in `cq/connectors/formats.py`."""
