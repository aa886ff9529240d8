import { OWN_TIME } from '../limits.ts'
import { calleeOf, type Finding, findingAt, nodesOf, type Rule, walk } from '../source.ts'

/** Time and randomness that no test can own. */
const RAW = new Set([
  ...['Date.now', 'performance.now', 'process.hrtime', 'process.hrtime.bigint', 'setTimeout', 'setInterval'],
  ...['Math.random', 'randomUUID', 'crypto.randomUUID', 'randomBytes', 'crypto.randomBytes', 'crypto.getRandomValues'],
])

/** Series names, which the token claims `plat_ns`, `plat_session` and their like are not. */
const SERIES =
  /^plat_(?:gateway|attest|license|reconcile|warm_pool|rendered|billable|token_mint|build|sessions$|session_[a-z]+_)/

/** Where series are named: the registry itself, which adds `plat_build_info`, and each service's table. */
const METRIC_TABLES = /^packages\/metrics\/|(?:^|\/)metrics\.ts$/

/** The registry's own methods take the name of a row, and the type checker knows the rows. */
const ROW_READERS = /(?:^|\.)(?:counter|gauge|histogram|summary)$/

// Written in pieces, so that this file does not find itself.
const UNDONE = new RegExp(`\\b(?:${['TO', 'DO'].join('')}|${['FIX', 'ME'].join('')}|${['X', 'XX'].join('')})\\b`)
const MACHINE = new RegExp(
  [
    ...[`/${'work'}/(?:main|shared)`, `/${'home'}/[a-z]`, `/${'Users'}/[A-Za-z]`, `/tmp/${'brief'}`],
    ...['artifactory', 'nexus', 'verdaccio', 'goproxy'].map((host) => `https?://[^\\s"'\`]*${host}[^\\s"'\`]*[./]`),
  ].join('|'),
)

/** Clocks and ids are injected. */
export const rawTime: Rule = (source) => {
  if (source.isTest || OWN_TIME.test(source.path)) return []
  return nodesOf(source, 'CallExpression', 'NewExpression')
    .filter((node) => RAW.has(calleeOf(node)) || isNowDate(calleeOf(node), node.arguments, node.type))
    .map((node) => findingAt(source, node.start, 'raw-time', `${calleeOf(node)}: take Clock or Ids of @plat/core`))
}

/** A series is named in its metric table; elsewhere only where the typed registry looks it up. */
export const metricNames: Rule = (source) => {
  if (source.isTest || source.isTable || METRIC_TABLES.test(source.path) || OWN_TIME.test(source.path)) return []
  const looked = new Set<unknown>()
  const found: Finding[] = []
  walk(source.program, (node) => {
    if (node.type === 'CallExpression' && ROW_READERS.test(calleeOf(node)) && Array.isArray(node.arguments)) {
      looked.add(node.arguments[0])
    }
    if (node.type !== 'Literal' || typeof node.value !== 'string' || looked.has(node) || !SERIES.test(node.value))
      return
    found.push(findingAt(source, node.start, 'metric-name', `${node.value}: name series in a metric table only`))
  })
  return found
}

/** Markers of unfinished work. Unfinished features are refused in one line instead. */
export const undone: Rule = (source) => [
  ...source.comments
    .filter(({ value }) => UNDONE.test(value))
    .map(({ start }) =>
      findingAt(source, start, 'undone', 'a note of unfinished work: do it, or refuse it in one clear line'),
    ),
  ...(source.isTest ? skippedTests(source) : []),
]

const skippedTests: Rule = (source) =>
  nodesOf(source, 'CallExpression')
    .filter((node) => /^(?:test|it|describe|suite)\.(?:skip|only|todo)$/.test(calleeOf(node)))
    .map((node) => findingAt(source, node.start, 'skipped-test', `${calleeOf(node)}: a test runs or is not there`))

/** Text of any file: what speaks of one machine instead of the project. */
export function machineWords(path: string, text: string, own: readonly string[]): readonly Finding[] {
  const message = 'a path or host of one machine: say it relative, or leave it out'
  const findings: Finding[] = []
  for (let line = 1, start = 0; start <= text.length; line++) {
    const end = text.indexOf('\n', start)
    const words = text.slice(start, end < 0 ? text.length : end)
    if (MACHINE.test(words) || own.some((word) => words.includes(word))) {
      findings.push({ path, line, rule: 'machine', message })
    }
    start = end < 0 ? text.length + 1 : end + 1
  }
  return findings
}

/** `new Date()` and `Date()` read the machine's time; `new Date(ms)` does not. */
function isNowDate(callee: string, args: unknown, type: string): boolean {
  return callee === 'Date' && (type === 'CallExpression' || (Array.isArray(args) && args.length === 0))
}
