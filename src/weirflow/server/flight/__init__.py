"""The Flight door: Arrow Flight SQL for every driver, and Weirflow's own protocol for its client."""
