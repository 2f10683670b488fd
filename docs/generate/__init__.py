"""Generate the reference pages from the tables of the services and from their profiles."""
