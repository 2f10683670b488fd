"""The plans of cp and rsync: listings, comparisons, and the items that result. Plans move no data."""
