/** Effect of HTML elements on the text of a page. @table */

/** Skipped: programs, styles, embedded content, and fallbacks. */
export const UNREAD: ReadonlySet<string> = new Set(
  'script style template noscript svg math iframe object canvas audio video select datalist map noframes noembed'.split(
    ' ',
  ),
)

/** Start and end a line. */
export const LINES: ReadonlySet<string> = new Set(
  `address article aside body button caption center dd details dialog dir div dt fieldset figcaption footer form header hgroup html
  legend li main menu nav option search section summary tbody tfoot thead tr`.split(/\s+/),
)

/** Separated by empty lines. */
export const PARAGRAPHS: ReadonlySet<string> = new Set(
  'blockquote dl figure h1 h2 h3 h4 h5 h6 hr ol p pre table ul'.split(' '),
)

/** Prefix of their text. */
export const MARKS: ReadonlyMap<string, string> = new Map([
  ['h1', '# '],
  ['h2', '## '],
  ['h3', '### '],
  ['h4', '#### '],
  ['h5', '##### '],
  ['h6', '###### '],
  ['li', '- '],
])

export const VOID: ReadonlySet<string> = new Set(
  'area base br col embed hr img input link meta param source track wbr'.split(' '),
)

/** Have a mandatory end tag, so that their content can be skipped up to it. */
export const CLOSED: ReadonlySet<string> = new Set(
  `a article aside b blockquote button code details dialog div dl em fieldset figure footer form h1 h2 h3 h4 h5 h6 header i label main
  nav ol pre section small span strong summary table u ul`.split(/\s+/),
)
