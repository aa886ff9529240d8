import { ON_CONNECTIONS_OF_THE_DIALER } from '../limits.ts'
import { calleeOf, type Finding, findingAt, isNode, nodesOf, type Rule, type Source } from '../source.ts'

/** Names that open connections, by module; `*` is every export. */
const OPENERS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['undici', new Set(['*'])],
  ['node:net', new Set(['connect', 'createConnection', 'Socket'])],
  ['node:tls', new Set(['connect'])],
  ['node:http', new Set(['request', 'get', 'Agent', 'globalAgent'])],
  ['node:https', new Set(['request', 'get', 'Agent', 'globalAgent'])],
  ['node:http2', new Set(['*'])],
  ['node:dgram', new Set(['*'])],
  ['ws', new Set(['WebSocket'])],
])

/** Globals that open connections. */
const GLOBALS = /^(?:globalThis\.)?(?:fetch|WebSocket|EventSource)$/

/** Product code: packages and services, except the dialer and the testkit. */
const GUARDED = /^(?:packages|services)\/(?!http\/dial\/|testkit\/)/

/**
 * One way out: whatever a service reaches, the dialer has resolved and checked. What follows redirects by itself, such as `fetch`,
 * would leave by another.
 */
export const waysOut: Rule = (source) => {
  if (
    source.isTest ||
    ON_CONNECTIONS_OF_THE_DIALER.has(source.path) ||
    source.path.endsWith('.fuzz.ts') ||
    !GUARDED.test(source.path)
  )
    return []
  const message = 'opens a connection: use the dialer of @plat/http, which checks the address'
  const fetches = nodesOf(source, 'CallExpression', 'NewExpression')
    .filter(({ callee }) => isNode(callee) && GLOBALS.test(source.text.slice(callee.start, callee.end)))
    .map((node) => findingAt(source, node.start, 'way-out', `${calleeOf(node)} ${message}`))
  return [...fetches, ...imported(source, message)]
}

function imported(source: Source, message: string): Finding[] {
  return nodesOf(source, 'ImportDeclaration').flatMap((node) => {
    const from = isNode(node.source) && typeof node.source.value === 'string' ? node.source.value : ''
    const openers = OPENERS.get(from)
    if (openers === undefined || node.importKind === 'type' || !Array.isArray(node.specifiers)) return []
    const opening = node.specifiers.filter(isNode).find((one) => one.importKind !== 'type' && isOpener(openers, one))
    return opening === undefined ? [] : [findingAt(source, opening.start, 'way-out', `${from} ${message}`)]
  })
}

/** A module taken as a whole opens whatever it can. */
function isOpener(openers: ReadonlySet<string>, { imported: name }: { readonly [member: string]: unknown }): boolean {
  if (openers.has('*') || !isNode(name)) return true
  return typeof name.name === 'string' && openers.has(name.name)
}
