import { glob } from '@plat/core'

/** Rules of one site that are kept; a site with more forbids everything. */
const MAX_RULES = 5_000

interface RobotsRule {
  readonly allows: boolean
  /** As written, `%` forms made alike. */
  readonly path: string
}

/** What a site says to robots of one name (RFC 9309). */
export class RobotsRules {
  readonly #rules: readonly RobotsRule[]
  /** Characters that are kept. */
  readonly size: number

  constructor(rules: readonly RobotsRule[]) {
    this.#rules = rules
    this.size = rules.reduce((sum, { path }) => sum + path.length, 0)
  }

  /** `path`: path and query. The longest rule that fits decides, and where two are as long the one that allows. */
  allows(path: string): boolean {
    if (path === '/robots.txt') return true
    const asked = alike(path)
    let decides: RobotsRule | null = null
    for (const rule of this.#rules) {
      const length = decides?.path.length ?? -1
      const isNearer = rule.path.length > length || (rule.path.length === length && rule.allows)
      if (isNearer && fits(rule.path, asked)) decides = rule
    }
    return decides?.allows ?? true
  }
}

/** A site without a `robots.txt`. */
export const everything = new RobotsRules([])
/** A site whose `robots.txt` cannot be had. */
export const nothing = new RobotsRules([{ allows: false, path: '/' }])

/** Reads a `robots.txt` for a product name such as `plat-web`. Lines that it does not know mean nothing. */
export function parseRobots(text: string, product: string): RobotsRules {
  const own: RobotsRule[] = []
  const others: RobotsRule[] = []
  let hasOwn = false
  let group: { own: boolean; others: boolean } = { own: false, others: false }
  let inNames = false
  for (const line of text.split(/\r\n|\r|\n/)) {
    const [name, value] = memberOf(line)
    if (name === 'user-agent') {
      if (!inNames) group = { own: false, others: false }
      inNames = true
      const isOwn = productOf(value) === product.toLowerCase()
      hasOwn ||= isOwn
      group = { own: group.own || isOwn, others: group.others || value === '*' }
    } else if (name === 'allow' || name === 'disallow') {
      inNames = false
      if (!value.startsWith('/') && !value.startsWith('*')) continue
      const rule = { allows: name === 'allow', path: alike(value) }
      if (group.own) own.push(rule)
      if (group.others) others.push(rule)
    }
  }
  const rules = hasOwn ? own : others
  return rules.length > MAX_RULES ? nothing : new RobotsRules(rules)
}

/** The part of a user agent by which robots are told apart: `plat-web` of `plat-web/1.0 (…)`. */
export function productOf(userAgent: string): string {
  return (/^[A-Za-z_-]+/.exec(userAgent)?.[0] ?? '').toLowerCase()
}

function memberOf(line: string): readonly [name: string, value: string] {
  const text = line.split('#', 1)[0] ?? ''
  const colon = text.indexOf(':')
  if (colon === -1) return ['', '']
  return [text.slice(0, colon).trim().toLowerCase(), text.slice(colon + 1).trim()]
}

/** A rule is a beginning, in which `*` is any run of characters and a `$` behind it the end. */
function fits(rule: string, path: string): boolean {
  return rule.endsWith('$') ? glob(rule.slice(0, -1))(path) : glob(`${rule}*`)(path)
}

/** One spelling for what percent-encoding may spell in several ways (RFC 9309, section 2.2.2). */
function alike(path: string): string {
  return path
    .toWellFormed()
    .replace(/[^\x21-\x7e]+/g, encodeURIComponent)
    .replace(/%[0-9A-Fa-f]{2}/g, (code) => {
      const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
      return /[A-Za-z0-9._~-]/.test(character) ? character : code.toUpperCase()
    })
}
