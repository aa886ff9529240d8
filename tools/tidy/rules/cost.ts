import { analyse } from 'scslre'
import { MAY_BUILD_REGEXES } from '../limits.ts'
import { type Regex, regexesOf } from '../regexes.ts'
import { findingAt, isNode, type Node, nodesOf, type Rule } from '../source.ts'

const MESSAGE =
  'a Map skips all deleted entries to find its first: take LruCache or LinkedMap of @plat/core, which find the oldest in constant time'

/** The head of a `Map` or `Set` is not looked for: after many deletions that takes time in proportion to them. */
export const firstOfMap: Rule = (source) => {
  if (source.isTest) return []
  const calls = nodesOf(source, 'CallExpression').filter(isNextOfView)
  const heads = nodesOf(source, 'VariableDeclarator').filter(
    ({ id, init }) => isNode(id) && id.type === 'ArrayPattern' && isNode(init) && isView(init) && isHeadAlone(id),
  )
  return [...calls, ...heads].map((node) => findingAt(source, node.start, 'first-of-map', MESSAGE))
}

/** `x.keys().next()` */
function isNextOfView({ callee }: Node): boolean {
  if (!isNode(callee) || callee.type !== 'MemberExpression') return false
  const { property, object } = callee
  return isNode(property) && property.name === 'next' && isNode(object) && isView(object)
}

/** `x.keys()`, `x.values()` or `x.entries()` */
function isView(node: Node): boolean {
  if (node.type !== 'CallExpression' || !isNode(node.callee) || !Array.isArray(node.arguments)) return false
  const { property } = node.callee
  const isName = isNode(property) && ['keys', 'values', 'entries'].includes(String(property.name))
  return isName && node.arguments.length === 0
}

/** `[first]`, with nothing behind it. */
function isHeadAlone({ elements }: Node): boolean {
  return Array.isArray(elements) && elements.length === 1 && isNode(elements[0]) && elements[0].type !== 'RestElement'
}

/** Product code. What runs for its owner alone, such as tools and tests, may be slow. */
const PRODUCT = /^(?:packages|services|apps|sdk)\/(?!testkit\/)/

/**
 * No regular expression takes more than linear time in the text that it is applied to. This finds what repeating one character makes
 * slow; `npm run fuzz -- -only cost` attacks all expressions with longer repetitions.
 */
export const linearRegexes: Rule = (source) => {
  if (source.isTest || !PRODUCT.test(source.path)) return []
  return regexesOf(source).flatMap((regex) => {
    const message = regex.pattern === null ? notConstant(source.path) : superLinear(regex)
    return message === null ? [] : [findingAt(source, regex.start, 'regex', message)]
  })
}

function notConstant(path: string): string | null {
  if (MAY_BUILD_REGEXES.has(path)) return null
  return 'an expression of other than constants of the same file: nothing can check how long it takes'
}

function superLinear({ pattern, flags }: Regex): string | null {
  const [report] = analyse({ source: pattern ?? '', flags }, { maxReports: 1 }).reports
  if (report === undefined) return null
  const growth = report.exponential ? 'exponential' : 'quadratic or worse'
  return `${growth} time for a repeated ${report.character.literal.source}: make what repeats unambiguous, or scan by hand`
}
