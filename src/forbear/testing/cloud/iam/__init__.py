"""IAM: service accounts with their keys, custom roles and policies; a package of the embedded cloud."""
