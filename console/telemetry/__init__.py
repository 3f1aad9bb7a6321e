"""What is seen of the fleet, as metrics of Prometheus."""
