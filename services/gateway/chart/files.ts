import { jsonSchema, type Node } from '@plat/config'
import { isObject } from '@plat/core'
import type { Thresholds } from './alerts.ts'
import { chartValues } from './values.ts'

/**
 * Defaults of `gateway.config` in the chart (docs/spec/gateway.md, "Deployment chart defaults"). The addresses
 * of the broker are not here: only the templates know them.
 */
const CHART_DEFAULTS: Readonly<Record<string, unknown>> = {
  policyFile: '/etc/plat/policies/policies.json',
  auditPath: '/var/lib/plat/audit/ledger.jsonl',
  auditCheckpointKey: 'file:///var/run/plat-audit-key/audit-signing.pem',
  shutdownDelaySeconds: 5,
  'identity.publicKeyFiles': ['/var/run/plat-identity/pub.pem'],
}

/** Draft 7 is what every version of Helm reads; the tables use nothing newer. */
const HELM_SCHEMA = 'http://json-schema.org/draft-07/schema#'

/** Go has no lookahead in regular expressions, and Helm refuses a schema with one; the gateway itself still checks it. */
const LOOKAHEAD = /\(\?[=!][^()]*\)/g

const VALUES_HEAD = `# Written from services/gateway/chart/values.ts and the gateway's tables by \`node services/gateway/reference.ts\`; do not edit.
# docs/kubernetes.md shows how the chart is installed.
`

/** Comment above gateway.config, of which only values set by the chart are listed. */
const CONFIG_MEANS =
  'gateway.json as it is: every key of docs/reference/gateway.md may stand here. Addresses of the broker, the files that the operator renders and the journals are filled in where they are left out.'

/** `values.yaml` and `values.schema.json` of the chart, out of the schema of gateway.json. */
export function chartFiles(gateway: Node, thresholds: Thresholds): { values: string; schema: object } {
  const config: Record<string, unknown> = {}
  let described = gateway
  for (const [path, value] of Object.entries(CHART_DEFAULTS)) {
    put(config, path.split('.'), value)
    described = withDefault(described, path.split('.'), value)
  }
  // Members of gateway.json are not listed: the schema has their properties, and the values have the defaults.
  const configSchema = { type: 'object', default: config, description: CONFIG_MEANS }
  const values = chartValues(configSchema, thresholds)
  const properties = chartValues({ ...forGo(described), description: CONFIG_MEANS }, thresholds).properties ?? {}
  const global: Node = { type: 'object', description: 'What Helm hands to every chart.' }
  const schema = closed({ type: 'object', properties: { global, ...properties } })
  return {
    values: VALUES_HEAD + yaml(values, ''),
    schema: { ...jsonSchema(schema, 'Values of the plat chart'), $schema: HELM_SCHEMA },
  }
}

/** With every object whose members are known closed, but for gateway.json, which is already. */
function closed(node: Node): Node {
  if (node.properties === undefined) return node
  const known = node.additionalProperties ?? Object.keys(node.properties).length === 0
  const members = Object.entries(node.properties).map(([key, member]): [string, Node] => [key, closed(member)])
  return { ...node, additionalProperties: known, properties: Object.fromEntries(members) }
}

/** Returns the schema with another default at `path`. The key is not required, because the chart supplies it. */
function withDefault(node: Node, [key = '', ...below]: readonly string[], value: unknown): Node {
  const member = node.properties?.[key]
  if (member === undefined) throw new Error(`${key} is not a key of gateway.json`)
  const changed = below.length > 0 ? withDefault(member, below, value) : { ...member, default: value }
  const required = (node.required ?? []).filter((name) => name !== key)
  return { ...node, required, properties: { ...node.properties, [key]: changed } }
}

/** The schema as Helm reads it: with patterns that Go knows, and without forms that an empty text, which is unset, has not. */
function forGo({ format, ...node }: Node): Node {
  const members = (of: Readonly<Record<string, Node>>) =>
    Object.fromEntries(Object.entries(of).map(([key, member]) => [key.replace(LOOKAHEAD, ''), forGo(member)]))
  return {
    ...node,
    ...(format !== undefined && node.default !== '' && { format }),
    ...(node.pattern !== undefined && { pattern: node.pattern.replace(LOOKAHEAD, '') }),
    ...(node.items !== undefined && { items: forGo(node.items) }),
    ...(node.properties !== undefined && { properties: members(node.properties) }),
    ...(node.patternProperties !== undefined && { patternProperties: members(node.patternProperties) }),
  }
}

function put(into: Record<string, unknown>, [key = '', ...below]: readonly string[], value: unknown): void {
  if (below.length === 0) {
    into[key] = value
    return
  }
  const inner: Record<string, unknown> = {}
  Object.assign(inner, into[key])
  put(inner, below, value)
  into[key] = inner
}

/** Width of a comment in values.yaml. */
const COMMENT_WIDTH = 120

/** Every key with its default, below what it means. */
function yaml(node: Node, indent: string): string {
  return Object.entries(node.properties ?? {})
    .map(([key, member]) => {
      const space = indent === '' ? '\n' : ''
      return `${space}${comment(member.description ?? '', indent)}${indent}${key}:${defaultOf(member, indent)}`
    })
    .join('')
}

function comment(text: string, indent: string): string {
  if (text === '') return ''
  const lines = ['']
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? ''
    if (`${indent}# ${last} ${word}`.length > COMMENT_WIDTH) lines.push(word)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  return lines.map((line) => `${indent}# ${line}\n`).join('')
}

/** Groups of known keys in block style; every other value as JSON, which YAML reads as it is. */
function defaultOf(node: Node, indent: string): string {
  if (Object.keys(node.properties ?? {}).length > 0) return `\n${yaml(node, `${indent}  `)}`
  return isObject(node.default) ? block(node.default, `${indent}  `) : ` ${JSON.stringify(node.default)}\n`
}

function block(value: object, indent: string): string {
  const members = Object.entries(value)
  if (members.length === 0) return ' {}\n'
  return `\n${members
    .map(([key, member]: [string, unknown]) =>
      isObject(member)
        ? `${indent}${key}:${block(member, `${indent}  `)}`
        : `${indent}${key}: ${JSON.stringify(member)}\n`,
    )
    .join('')}`
}
