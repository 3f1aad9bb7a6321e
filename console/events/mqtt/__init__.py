"""Events and states for a broker of MQTT, which nothing is taken from."""
