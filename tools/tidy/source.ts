import { type Comment, parseSync } from 'oxc-parser'

/** A node of the syntax tree (ESTree with TypeScript): offsets count UTF-16 units. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

/** A parsed file of the repository. */
export interface Source {
  /** Relative to the root, with slashes. */
  readonly path: string
  readonly text: string
  readonly program: Node
  readonly comments: readonly Comment[]
  /** A test, or what only tests use: a folder `testing`. */
  readonly isTest: boolean
  /** Data rather than code: its first comment says `@table`. */
  readonly isTable: boolean
}

/** One thing to mend. */
export interface Finding {
  readonly path: string
  readonly line: number
  readonly rule: string
  /** The problem and its fix. */
  readonly message: string
}

/** Looks at one file. */
export type Rule = (source: Source) => readonly Finding[]

/** Parses a file. Syntax errors are the type checker's business: what could be parsed is looked at. */
export function readSource(path: string, text: string): Source {
  const { program, comments } = parseSync(path, text)
  const root: unknown = program
  if (!isNode(root)) throw new Error(`${path}: no syntax tree`)
  return {
    path,
    text,
    program: root,
    comments,
    isTest: /\.(?:test|fuzz)\.ts$|(?:^|\/)testing\//.test(path),
    isTable: comments[0]?.value.includes('@table') === true,
  }
}

/** Calls `visit` with every node, parents before children. */
export function walk(node: Node, visit: (node: Node) => void): void {
  visit(node)
  for (const name in node) {
    const member = node[name]
    if (Array.isArray(member)) {
      for (const item of member) if (isNode(item)) walk(item, visit)
    } else if (isNode(member)) walk(member, visit)
  }
}

/** Nodes by type, in the order of the text. The rules look for two dozen types in each source, which is walked once. */
const indexes = new WeakMap<Source, ReadonlyMap<string, readonly Node[]>>()

/** All nodes of the given types, in the order of the text. */
export function nodesOf(source: Source, ...types: readonly string[]): readonly Node[] {
  const index = indexes.get(source) ?? indexOf(source)
  indexes.set(source, index)
  const [first, ...others] = types.map((type) => index.get(type) ?? [])
  if (others.length === 0) return first ?? []
  // Nodes that begin together contain one another: the longest is the parent.
  return [first ?? [], ...others].flat().sort((a, b) => a.start - b.start || b.end - a.end)
}

function indexOf(source: Source): ReadonlyMap<string, readonly Node[]> {
  const index = new Map<string, Node[]>()
  walk(source.program, (node) => {
    const nodes = index.get(node.type)
    if (nodes === undefined) index.set(node.type, [node])
    else nodes.push(node)
  })
  return index
}

/** A finding at an offset of the text. */
export function findingAt(source: Source, offset: number, rule: string, message: string): Finding {
  return { path: source.path, line: lineAt(source.text, offset), rule, message }
}

/** 1-based line of an offset. */
export function lineAt(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line++
  return line
}

/** The dotted name of a call's callee or a `new` expression's class: `Date.now`, `setTimeout`; else ''. */
export function calleeOf(node: Node): string {
  return isNode(node.callee) ? dotted(node.callee) : ''
}

function dotted(node: Node): string {
  if (node.type === 'Identifier') return String(node.name)
  if (node.type !== 'MemberExpression' || !isNode(node.object) || !isNode(node.property)) return ''
  const object = dotted(node.object)
  return `${object === 'globalThis' || object === '' ? '' : `${object}.`}${String(node.property.name)}`
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value && 'end' in value
}
