"""The site: the settings of Sphinx, and a check of the pages that it makes."""
