import type { ConfigBlock } from './block.ts'
import type { Node } from './node.ts'

/** Schema members that are not for editors. */
const OWN_NOTES: ReadonlySet<string> = new Set(['file', 'format', 'required', 'properties'])

/** The joined schema as JSON Schema 2020-12 for editors: keys with a default are optional. */
export function jsonSchema(node: Node, title: string): object {
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', title, ...publicNode(node) }
}

function publicNode(node: Node): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(node)) if (!OWN_NOTES.has(name)) result[name] = value
  if (node.items !== undefined) result.items = publicNode(node.items)
  if (node.patternProperties !== undefined) result.patternProperties = publicMembers(node.patternProperties)
  if (node.format === 'http-url') result.format = 'uri'
  if (node.properties === undefined) return result
  const { properties } = node
  const required = (node.required ?? []).filter((key) => properties[key]?.default === undefined)
  if (required.length > 0) result.required = required
  result.properties = publicMembers(properties)
  return result
}

function publicMembers(members: Readonly<Record<string, Node>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([key, member]) => [key, publicNode(member)]))
}

/** Markdown tables of every key, by feature. */
export function markdownReference(blocks: readonly ConfigBlock[]): string {
  const sections: string[] = []
  for (const [feature, own] of Map.groupBy(blocks, (block) => block.feature)) {
    const rows: string[] = []
    for (const block of own) {
      const schema: Node = block.schema
      for (const [key, node] of Object.entries(schema.properties ?? {})) {
        const path = block.path === '' ? key : `${block.path}.${key}`
        rows.push(...keyRows(path, node, schema.required?.includes(key) === true))
      }
    }
    if (rows.length > 0) sections.push(`## ${feature}\n\n${TABLE_HEAD}${rows.join('')}`)
  }
  return sections.join('\n')
}

const TABLE_HEAD = '| Key | Type | Default | Meaning |\n|---|---|---|---|\n'

/** One row, and below an object, a list or a map of objects one for each of its keys. */
function keyRows(path: string, node: Node, isRequired: boolean): string[] {
  const [member] = Object.values(node.patternProperties ?? {})
  const below: readonly [string, Node | undefined][] = [
    [path, node],
    [`${path}[]`, node.items],
    [`${path}.<name>`, member],
  ]
  const inner = below.flatMap(([prefix, holder]) =>
    Object.entries(holder?.properties ?? {}).flatMap(([key, one]) =>
      keyRows(`${prefix}.${key}`, one, holder?.required?.includes(key) === true),
    ),
  )
  // An object whose keys are listed needs no separate row.
  return node.properties === undefined ? [keyRow(path, node, isRequired), ...inner] : inner
}

function keyRow(path: string, node: Node, isRequired: boolean): string {
  const meaning = `${node.description ?? ''}${limits(node)}`.replaceAll('|', '\\|')
  return `| \`${path}\` | ${typeName(node)} | ${defaultText(node, isRequired)} | ${meaning} |\n`
}

function typeName(node: Node): string {
  if (node.enum !== undefined) return node.enum.map((value) => `\`${value}\``).join(' or ')
  if (node.items !== undefined) return `list of ${typeName(node.items)}`
  const [member] = Object.values(node.patternProperties ?? {})
  return member === undefined ? (node.type ?? 'any') : `map to ${typeName(member)}`
}

function defaultText({ default: preset }: Node, isRequired: boolean): string {
  if (preset === undefined) return isRequired ? 'required' : 'empty'
  const isEmpty = preset === '' || (typeof preset === 'object' && preset !== null && Object.keys(preset).length === 0)
  return isEmpty ? 'empty' : `\`${String(preset)}\``
}

function limits({ minimum, maximum, file }: Node): string {
  const range =
    minimum === undefined ? '' : maximum === undefined ? ` At least ${minimum}.` : ` From ${minimum} to ${maximum}.`
  const missing = file === undefined ? '' : ` A missing file: ${file}.`
  return range + missing
}
