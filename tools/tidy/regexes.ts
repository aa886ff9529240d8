import { calleeOf, isNode, type Node, nodesOf, type Source } from './source.ts'

/** A regular expression of a source. */
export interface Regex {
  /** Offset in the text. */
  readonly start: number
  /** Null where it is put together at run time. */
  readonly pattern: string | null
  readonly flags: string
}

/** Every regular expression of a source: literals, those that are constructed, and patterns of schemas. */
export function regexesOf(source: Source): readonly Regex[] {
  const texts = constantsOf(source)
  const literals = nodesOf(source, 'Literal').flatMap((node) => literalOf(node))
  const made = nodesOf(source, 'NewExpression', 'CallExpression')
    .filter((node) => calleeOf(node) === 'RegExp')
    .map(({ start, arguments: args }) => ({ start, ...partsOf(Array.isArray(args) ? args : [], texts) }))
  const schemas = nodesOf(source, 'Property', 'VariableDeclarator').flatMap((node) => schemaPattern(node, texts))
  return [...literals, ...made, ...schemas].sort((a, b) => a.start - b.start)
}

function literalOf({ start, regex }: Node): readonly Regex[] {
  if (typeof regex !== 'object' || regex === null || !('pattern' in regex) || !('flags' in regex)) return []
  return [{ start, pattern: String(regex.pattern), flags: String(regex.flags) }]
}

function partsOf([pattern, flags]: readonly unknown[], texts: ReadonlyMap<string, string>) {
  return { pattern: textOf(pattern, texts), flags: textOf(flags, texts) ?? '' }
}

/** `pattern: '…'` of a schema, and a constant `X_PATTERN`. JSON schemas know the flag u alone. */
function schemaPattern(
  { start, type, key, id, value, init }: Node,
  texts: ReadonlyMap<string, string>,
): readonly Regex[] {
  const name = type === 'Property' ? key : id
  if (!isNode(name) || !/(?:^|_)PATTERN$|^pattern$/.test(String(name.name))) return []
  const pattern = textOf(type === 'Property' ? value : init, texts)
  return pattern === null ? [] : [{ start, pattern, flags: 'u' }]
}

/** Constants that are texts, by name. */
function constantsOf(source: Source): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  for (const { id, init } of nodesOf(source, 'VariableDeclarator')) {
    const text = textOf(init, texts)
    if (isNode(id) && text !== null) texts.set(String(id.name), text)
  }
  return texts
}

/** The text of a literal, a template or the name of a constant; null for anything else. */
function textOf(node: unknown, texts: ReadonlyMap<string, string>): string | null {
  if (!isNode(node)) return null
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null
  if (node.type === 'Identifier') return texts.get(String(node.name)) ?? null
  if (node.type !== 'TemplateLiteral' || !Array.isArray(node.quasis) || !Array.isArray(node.expressions)) return null
  const parts = node.expressions.map((each: unknown) => textOf(each, texts))
  const quasis: readonly string[] = node.quasis.map(({ value }: { value: { cooked: string } }) => value.cooked)
  return parts.includes(null) ? null : quasis.map((text, at) => text + (parts[at] ?? '')).join('')
}
