"""The operations of the API, one module per kind of resource; each turns a `Call` into a `Reply`."""
