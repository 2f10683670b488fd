/* A page from a file may not fetch other pages, so the search lists titles alone there. */
if (window.location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
