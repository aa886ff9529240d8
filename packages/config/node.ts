import type { ConfigBlock, KeyNotes } from './block.ts'

/** The part of JSON Schema that configuration tables use, as built by TypeBox, with the additional notes. */
export interface Node extends KeyNotes {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, Node>>
  readonly required?: readonly string[]
  readonly items?: Node
  /** Alternatives of different types. */
  readonly anyOf?: readonly Node[]
  readonly patternProperties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: Node | boolean
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
}

interface Tree {
  properties: Record<string, Node>
  children: Map<string, Tree>
  /** Schema of a block without its properties. */
  base: Node
}

/** Joins the schemas of all blocks. Throws when two of them define the same key. */
export function joinSchema(blocks: readonly ConfigBlock[]): Node {
  const root = newTree()
  for (const block of blocks) {
    const tree = treeAt(root, block.path)
    const schema: Node = block.schema
    for (const [key, node] of Object.entries(schema.properties ?? {})) claim(tree, key, { ...node }, block.path)
    const required = [...(tree.base.required ?? []), ...(schema.required ?? [])]
    // An absent block is read as an empty one; the file itself must exist.
    tree.base = block.path === '' ? { type: 'object', required } : { ...schema, required, default: {} }
  }
  return grow(root)
}

/** An object that only holds blocks may be absent like each of them. */
function newTree(): Tree {
  return { properties: {}, children: new Map(), base: { type: 'object', default: {} } }
}

function treeAt(root: Tree, path: string): Tree {
  let tree = root
  for (const key of path === '' ? [] : path.split('.')) {
    const next = tree.children.get(key) ?? newTree()
    tree.children.set(key, next)
    tree = next
  }
  return tree
}

function claim(tree: Tree, key: string, node: Node, owner: string): void {
  if (Object.hasOwn(tree.properties, key)) throw new Error(`two tables describe the key ${key} (${owner})`)
  tree.properties[key] = node
}

function grow({ properties, children, base }: Tree): Node {
  const all: Record<string, Node> = { ...properties }
  for (const [key, child] of children) {
    // A block may describe an object with keys that are separate blocks.
    const inner = all[key]
    const grown = grow(child)
    all[key] = inner === undefined ? grown : { ...inner, properties: { ...inner.properties, ...grown.properties } }
  }
  return { ...base, type: 'object', properties: all, required: base.required ?? [], additionalProperties: false }
}

/** Returns the default of a key with the defaults inside it, or undefined when it has none. */
export function filledDefault(node: Node): unknown {
  if (node.default === undefined) return undefined
  const value: unknown = structuredClone(node.default)
  if (node.properties === undefined || typeof value !== 'object' || value === null) return value
  const filled: Record<string, unknown> = { ...value }
  for (const [key, member] of Object.entries(node.properties)) {
    const inner = filledDefault(member)
    if (inner !== undefined && !Object.hasOwn(filled, key)) filled[key] = inner
  }
  return filled
}

/** Every key path that the schema knows, for suggestions across blocks. */
export function* knownPaths(node: Node, prefix = ''): Generator<string> {
  for (const [key, member] of Object.entries(node.properties ?? {})) {
    const path = prefix === '' ? key : `${prefix}.${key}`
    yield path
    yield* knownPaths(member, path)
  }
}
