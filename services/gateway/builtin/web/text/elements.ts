/** What elements of HTML do to the text of a page. @table */

/** Nothing of them is read: programs, styles, what other programs show, and what is shown only where something does not work. */
export const UNREAD: ReadonlySet<string> = new Set(
  'script style template noscript svg math iframe object canvas audio video select datalist map noframes noembed'.split(
    ' ',
  ),
)

/** They begin and end a line. */
export const LINES: ReadonlySet<string> = new Set(
  `address article aside body button caption center dd details dialog dir div dt fieldset figcaption footer form header hgroup html
  legend li main menu nav option search section summary tbody tfoot thead tr`.split(/\s+/),
)

/** They stand apart from what is around them. */
export const PARAGRAPHS: ReadonlySet<string> = new Set(
  'blockquote dl figure h1 h2 h3 h4 h5 h6 hr ol p pre table ul'.split(' '),
)

/** What their text begins with. */
export const MARKS: ReadonlyMap<string, string> = new Map([
  ['h1', '# '],
  ['h2', '## '],
  ['h3', '### '],
  ['h4', '#### '],
  ['h5', '##### '],
  ['h6', '###### '],
  ['li', '- '],
])

/** They have no content, and no end. */
export const VOID: ReadonlySet<string> = new Set(
  'area base br col embed hr img input link meta param source track wbr'.split(' '),
)

/** Their end is always written, so that what stands in them can be left out until there. */
export const CLOSED: ReadonlySet<string> = new Set(
  `a article aside b blockquote button code details dialog div dl em fieldset figure footer form h1 h2 h3 h4 h5 h6 header i label main
  nav ol pre section small span strong summary table u ul`.split(/\s+/),
)
