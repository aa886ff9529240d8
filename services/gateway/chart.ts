import { jsonSchema, type Node } from '@plat/config'

/**
 * What the chart sets in `gateway.config` where the contract says so (document 3, "Deployment chart defaults"). The addresses
 * of the broker are not here: only the templates know them. A key that is not built yet is left out until it is.
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

const VALUES_HEAD = `# Written from the gateway's tables by \`node services/gateway/reference.ts\`; do not edit.
# gateway.config is the file gateway.json as it is: every key of docs/reference/gateway.md may stand here.
`

/** `values.yaml` and `values.schema.json` of the chart, out of the schema of gateway.json. */
export function chartFiles(gateway: Node): { values: string; schema: object } {
  const defaults = Object.entries(CHART_DEFAULTS).filter(([path]) => nodeAt(gateway, path)?.built !== false)
  const config: Record<string, unknown> = {}
  let described = gateway
  for (const [path, value] of defaults) {
    put(config, path.split('.'), value)
    described = withDefault(described, path.split('.'), value)
  }
  const schema = closed({
    global: { type: 'object', description: 'What Helm hands to every chart.' },
    gateway: closed({ config: { ...forGo(described), description: 'gateway.json.' } }),
  })
  return {
    values: VALUES_HEAD + yaml({ gateway: { config } }, ''),
    schema: { ...jsonSchema(schema, 'Values of the plat chart'), $schema: HELM_SCHEMA },
  }
}

function closed(properties: Readonly<Record<string, Node>>): Node {
  return { type: 'object', additionalProperties: false, properties }
}

function nodeAt(node: Node, path: string): Node | undefined {
  return path.split('.').reduce<Node | undefined>((at, key) => at?.properties?.[key], node)
}

/** The schema with another default at `path`: whoever leaves the key out gets it from the chart, so it is not required. */
function withDefault(node: Node, [key = '', ...below]: readonly string[], value: unknown): Node {
  const member = node.properties?.[key]
  if (member === undefined) throw new Error(`${key} is no key of gateway.json`)
  const changed = below.length > 0 ? withDefault(member, below, value) : { ...member, default: value }
  const required = (node.required ?? []).filter((name) => name !== key)
  return { ...node, required, properties: { ...node.properties, [key]: changed } }
}

/** The schema with patterns that Go can read. */
function forGo(node: Node): Node {
  const members = (of: Readonly<Record<string, Node>>) =>
    Object.fromEntries(Object.entries(of).map(([key, member]) => [key.replace(LOOKAHEAD, ''), forGo(member)]))
  return {
    ...node,
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

/** Objects in block style; every other value as JSON, which YAML reads as it is. */
function yaml(value: object, indent: string): string {
  return Object.entries(value)
    .map(([key, member]: [string, unknown]) =>
      typeof member === 'object' && member !== null && !Array.isArray(member)
        ? `${indent}${key}:\n${yaml(member, `${indent}  `)}`
        : `${indent}${key}: ${JSON.stringify(member)}\n`,
    )
    .join('')
}
