"""The bound plan as Spark SQL, run by Spark on a closed prefix of its sources."""
