/* Results are few words of a newcomer: pages for readers come before reference, changes and architecture. */
var Scorer = {
  score: ([page, , , , score]) => {
    const kinds = [
      [/^docs\/(faq|troubleshooting|cheatsheet)$/, 4],
      [/^docs\/use\//, 3],
      [/^docs\/(adopt|guide|http|install|migrate|observe|testing|tutorial|vouching|waits|security)$/, 2],
      [/^docs\/reference\/|^docs\/(audit|cli|export|simulate|transfer|tools|index|google)$|^examples\//, -12],
      [/^(CHANGELOG|CONTRIBUTING|README)$|ARCHITECTURE$/, -20],
    ];
    const kind = kinds.find(([names]) => names.test(page));
    return score + (kind ? kind[1] : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
