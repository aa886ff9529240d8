import { glob, Slices } from '@plat/core'

/** Maximum number of rules per site; a site with more forbids everything. */
const MAX_RULES = 5_000

interface RobotsRule {
  readonly allows: boolean
  /** Length of the normalized path. */
  readonly length: number
  /** The normalized path, with one star for several. */
  readonly pattern: string
  /** Characters that a path has at least if it matches. */
  readonly least: number
}

/** Rules of a site for one robot name (RFC 9309). */
export class RobotsRules {
  readonly #rules: readonly RobotsRule[]
  /** Number of stored characters. */
  readonly size: number

  constructor(rules: readonly RobotsRule[]) {
    this.#rules = rules
    this.size = rules.reduce((sum, { length }) => sum + length, 0)
  }

  /**
   * `path`: path and query. The longest matching rule decides, and of two with equal length the allowing one. In slices: a site may have
   * thousands of rules that are almost the path.
   */
  async allows(path: string): Promise<boolean> {
    if (path === '/robots.txt') return true
    const normalized = alike(path)
    const slices = new Slices()
    let decides: RobotsRule | null = null
    for (const rule of this.#rules) {
      if (slices.isOver) await slices.next()
      if (rule.least > normalized.length) continue
      const length = decides?.length ?? -1
      const isNearer = rule.length > length || (rule.length === length && rule.allows)
      if (isNearer && fits(rule.pattern, normalized)) decides = rule
    }
    return decides?.allows ?? true
  }
}

/** A site without a `robots.txt`. */
export const everything = new RobotsRules([])
/** A site whose `robots.txt` is not available. */
export const nothing = new RobotsRules([ruleOf('disallow', '/')])

/** Parses a `robots.txt` for a product name such as `plat-web`. Ignores unknown lines. */
export function parseRobots(text: string, product: string): RobotsRules {
  const own: RobotsRule[] = []
  const others: RobotsRule[] = []
  let hasOwn = false
  let group: { own: boolean; others: boolean } = { own: false, others: false }
  let inNames = false
  for (const [name, value] of membersOf(text)) {
    if (name === 'user-agent') {
      if (!inNames) group = { own: false, others: false }
      inNames = true
      const isOwn = productOf(value) === product.toLowerCase()
      hasOwn ||= isOwn
      group = { own: group.own || isOwn, others: group.others || value === '*' }
    } else if (name === 'allow' || name === 'disallow') {
      inNames = false
      if (!value.startsWith('/') && !value.startsWith('*')) continue
      const lists = [group.own ? own : null, group.others ? others : null]
      if (lists.every((list) => list === null || list.length > MAX_RULES)) continue
      const rule = ruleOf(name, value)
      for (const list of lists) list?.push(rule)
    }
  }
  const rules = hasOwn ? own : others
  return rules.length > MAX_RULES ? nothing : new RobotsRules(rules)
}

function ruleOf(name: 'allow' | 'disallow', value: string): RobotsRule {
  const path = alike(value)
  const pattern = path.replace(/\*{2,}/g, '*')
  const least = pattern.replaceAll('*', '').length - (pattern.endsWith('$') ? 1 : 0)
  return { allows: name === 'allow', length: path.length, pattern, least }
}

/** Returns the product name of a user agent: `plat-web` of `plat-web/1.0 (…)`. */
export function productOf(userAgent: string): string {
  return (/^[A-Za-z_-]+/.exec(userAgent)?.[0] ?? '').toLowerCase()
}

type Member = readonly [name: string, value: string]

/** Yields the relevant lines. A file may consist of line breaks or colons, so no other line is copied. */
function* membersOf(text: string): Generator<Member> {
  let [start, colon, hash] = [0, -1, -1]
  for (let at = 0; at <= text.length; at++) {
    const code = at === text.length ? LF : text.charCodeAt(at)
    if (code === COLON && colon === -1 && hash === -1) colon = at
    else if (code === HASH && hash === -1) hash = at
    if (code !== LF && code !== CR) continue
    const member = colon > start ? memberOf(text, start, colon, hash === -1 ? at : hash) : null
    if (member !== null) yield member
    start = at + 1
    colon = -1
    hash = -1
  }
}

function memberOf(text: string, start: number, colon: number, end: number): Member | null {
  const name = text.slice(start, colon).trim()
  const known = NAMES.find((one) => one.length === name.length && one === name.toLowerCase())
  return known === undefined ? null : [known, text.slice(colon + 1, end).trim()]
}

const NAMES = ['user-agent', 'allow', 'disallow'] as const
const LF = 0x0a
const CR = 0x0d
const HASH = 0x23
const COLON = 0x3a

/** Matches a prefix, in which `*` is any text and a final `$` the end. */
function fits(rule: string, path: string): boolean {
  return rule.endsWith('$') ? glob(rule.slice(0, -1))(path) : glob(`${rule}*`)(path)
}

/** Normalizes percent-encoding (RFC 9309, section 2.2.2). */
function alike(path: string): string {
  return path
    .toWellFormed()
    .replace(/[^\x21-\x7e]+/g, encodeURIComponent)
    .replace(/%[0-9A-Fa-f]{2}/g, (code) => {
      const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
      return /[A-Za-z0-9._~-]/.test(character) ? character : code.toUpperCase()
    })
}
