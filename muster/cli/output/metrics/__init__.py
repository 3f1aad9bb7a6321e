"""Numbers over time for people: charts, sparklines and tables."""
