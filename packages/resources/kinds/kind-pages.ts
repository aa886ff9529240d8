import { isObject, type JsonObject } from '@plat/core'
import { stringify } from 'yaml'
import { editorSchemaOf } from './editor-schema.ts'
import { editorSchemaFile, isKind, type Kind, kinds } from './kinds.ts'

/** A reference page of each kind by the name of its file, from the schemas: every field with type, limits, default and meaning. */
export function kindPages(): ReadonlyMap<string, string> {
  return new Map(
    Object.keys(kinds)
      .filter(isKind)
      .map((kind) => [`${kind.toLowerCase()}.md`, kindPage(kind)]),
  )
}

function kindPage(kind: Kind): string {
  const schema = editorSchemaOf(kind)
  const { properties, examples } = isObject(schema) ? schema : {}
  const spec = memberOf(properties, 'spec')
  const [example] = Array.isArray(examples) ? examples : []
  const rows = fieldRows(spec, '')
  return [
    `# ${kind}`,
    '',
    'Written from the schemas by `node services/gateway/reference.ts`; do not edit. Fields of `spec`; a star marks those that are required where',
    `their parent is. Editors check files with [${editorSchemaFile(kind)}](../schemas/${editorSchemaFile(kind)}), and \`plat schema\` prints it.`,
    ...(typeof spec.$comment === 'string' ? ['', `Rules: ${sentence(spec.$comment)}`] : []),
    '',
    '| field | type | default | meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
    '## Example',
    '',
    '```yaml',
    stringify(example).trimEnd(),
    '```',
    '',
  ].join('\n')
}

/** Rows of the members of an object, each followed by the rows below it. `path` ends with a dot, or is empty. */
function fieldRows(node: JsonObject, path: string): readonly string[] {
  const required: readonly unknown[] = Array.isArray(node.required) ? node.required : []
  return Object.keys(objectIn(node.properties)).flatMap((name) => {
    const field = memberOf(node.properties, name)
    const cells = [
      `\`${path}${name}\`${required.includes(name) ? ' *' : ''}`,
      typeOf(field),
      defaultOf(field),
      meaningOf(field),
    ]
    return [`| ${cells.join(' | ')} |`, ...innerRows(field, `${path}${name}`)]
  })
}

/** Rows of the objects in a field: `rules[].name`, `labels.<name>.value`. */
function innerRows(field: JsonObject, path: string): readonly string[] {
  if (isObject(field.properties)) return fieldRows(field, `${path}.`)
  if (isObject(field.items)) return innerRows(field.items, `${path}[]`)
  return isObject(field.additionalProperties) ? innerRows(field.additionalProperties, `${path}.<name>`) : []
}

function typeOf(field: JsonObject): string {
  if (isObject(field.items)) return `list of ${typeOf(field.items)}${limitsOf(field, 'Items', 'item')}`
  if (isObject(field.additionalProperties))
    return `map of ${typeOf(field.additionalProperties)}${limitsOf(field, 'Properties', 'entry')}`
  if (Array.isArray(field.enum)) return field.enum.map((one) => `\`${String(one)}\``).join(', ')
  const name = Array.isArray(field.type) ? field.type.join(' or ') : String(field.type)
  return `${field.format === 'date-time' ? 'time (RFC 3339)' : name}${limitsOf(field, 'Length', 'character')}${rangeOf(field)}`
}

/** ` (at most 64 characters)`; empty without limits. */
function limitsOf(field: JsonObject, suffix: string, unit: string): string {
  const [least, most] = [field[`min${suffix}`], field[`max${suffix}`]]
  const count = (value: unknown) => `${String(value)} ${value === 1 ? unit : plural(unit)}`
  const limits = [
    ...(typeof least === 'number' && least > 0 ? [`at least ${count(least)}`] : []),
    ...(typeof most === 'number' ? [`at most ${count(most)}`] : []),
  ]
  return limits.length === 0 ? '' : ` (${limits.join(', ')})`
}

function plural(unit: string): string {
  return unit === 'entry' ? 'entries' : `${unit}s`
}

function rangeOf({ minimum, maximum }: JsonObject): string {
  if (typeof minimum === 'number' && typeof maximum === 'number') return ` from ${minimum} to ${maximum}`
  if (typeof minimum === 'number') return ` from ${minimum}`
  return typeof maximum === 'number' ? ` up to ${maximum}` : ''
}

function defaultOf({ default: value }: JsonObject): string {
  return value === undefined ? '' : `\`${JSON.stringify(value)}\``
}

/** The description, and rules that the type does not express. A bar would end the cell. */
function meaningOf({ description, $comment }: JsonObject): string {
  const texts = [description, $comment].filter((text) => typeof text === 'string')
  return texts.map(sentence).join(' ').replaceAll('|', '\\|').replaceAll('\n', ' ')
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

function objectIn(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

function memberOf(value: unknown, name: string): JsonObject {
  return objectIn(objectIn(value)[name])
}
