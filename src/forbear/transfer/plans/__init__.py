"""Plans: what cp and rsync are to do, as items. They list and compare, but move no data."""
