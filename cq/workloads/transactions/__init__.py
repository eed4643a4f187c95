"""Transactional applications of TStream (Zhang et al., ICDE 2020, section 6.2): events and first rows of tables."""
