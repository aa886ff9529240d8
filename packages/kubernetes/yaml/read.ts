import { isObject } from '@plat/core'
import {
  type Alias,
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type ParsedNode,
  Parser,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import { BAD_CHARACTER, readPlain } from './plain.ts'

/** Largest integer that may be a key. */
const MAX_KEY = 2n ** 63n - 1n

/** Maximum number of nodes that aliases may add to a document: repeated anchors can expand a text exponentially. */
const MAX_ALIASED_NODES = 10_000

/** A problem of a text, with its line (from 1). */
export interface YamlProblem {
  readonly line: number
  readonly message: string
}

export interface YamlText {
  /** Null when there are problems. */
  readonly value: unknown
  readonly problems: readonly YamlProblem[]
  /** For the positions of fields; null when the text could not be parsed. */
  readonly document: Document.Parsed | null
  readonly lines: LineCounter
}

/** Maximum nesting: the parser and the readers of its result are recursive. */
const MAX_DEPTH = 200

/**
 * Parses one YAML or JSON document like the strict parser of sigs.k8s.io/yaml, used by kubectl and Kubernetes controllers: the value is JSON, keys
 * are strings, and duplicate keys are refused. Also refuses a second document, tags other than those of JSON types, floats as keys, keys that only
 * differ before they become strings, and plain `?x`.
 */
export function readYaml(text: string): YamlText {
  const lines = new LineCounter()
  let document: Document.Parsed | null = null
  try {
    document = parseText(text, lines)
    return { value: new Reader().read(document.contents), problems: [], document, lines }
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    const problem = { line: Math.max(1, lines.linePos(error.offset).line), message: error.message }
    return { value: null, problems: [problem], document, lines }
  }
}

function parseText(text: string, lines: LineCounter): Document.Parsed {
  // A schema without types: this reader decides. The library's check of unique keys is quadratic.
  const composer = new Composer({ schema: 'failsafe', version: '1.1', uniqueKeys: false })
  const [document, second] = composer.compose(tokensOf(text, lines), true, text.length)
  if (document === undefined) throw new YamlError(0, 'no document')
  const { errors, warnings, directives } = document
  // Tags are left to this reader: the schema has none.
  const [problem] = [...errors, ...warnings.filter(({ code }) => code !== 'TAG_RESOLVE_FAILED')]
  if (problem !== undefined) throw new YamlError(problem.pos[0], problem.message)
  if (second !== undefined) throw new YamlError(second.range[0], 'more than one document')
  const bad = text.search(BAD_CHARACTER)
  if (bad >= 0) throw new YamlError(bad, 'a control character or an unusual line break: escape it in double quotes')
  const { explicit, version } = directives.yaml
  if (explicit === true && version !== '1.1') throw new YamlError(0, `YAML ${version}: only version 1.1 is read`)
  return document
}

function* tokensOf(text: string, lines: LineCounter): Generator<CST.Token> {
  const parser = new Parser(lines.addNewLine)
  lines.addNewLine(0)
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme)
    if (parser.stack.length > MAX_DEPTH) throw new YamlError(parser.offset, `nested deeper than ${MAX_DEPTH}`)
  }
  yield* parser.end()
}

class YamlError extends Error {
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}

type Node = ParsedNode | null

interface Anchor {
  readonly value: unknown
  readonly nodes: number
}

/** Builds the JSON value of a document, in the order of its text. */
class Reader {
  readonly #anchors = new Map<string, Anchor | 'open'>()
  #nodes = 0
  #aliased = 0

  read(node: Node): unknown {
    this.#nodes++
    if (node === null) return null
    if (isAlias(node)) return this.#alias(node.source, node.range[0])
    const { anchor } = node
    if (anchor === undefined) return this.#content(node)
    this.#anchors.set(anchor, 'open')
    const before = this.#nodes
    const value = this.#content(node)
    this.#anchors.set(anchor, { value, nodes: this.#nodes - before + 1 })
    return value
  }

  #alias(name: string, offset: number): unknown {
    const anchor = this.#anchors.get(name)
    if (anchor === undefined) throw new YamlError(offset, `*${name}: no anchor of that name before it`)
    if (anchor === 'open') throw new YamlError(offset, `*${name}: the anchor contains itself`)
    this.#nodes += anchor.nodes
    this.#aliased += anchor.nodes
    if (this.#aliased > MAX_ALIASED_NODES)
      throw new YamlError(offset, `*${name}: aliases add more than ${MAX_ALIASED_NODES} nodes`)
    return anchor.value
  }

  #content(node: Exclude<ParsedNode, Alias.Parsed>): unknown {
    if (isMap(node)) return this.#map(node)
    if (isSeq(node)) {
      checkTag(node, 'tag:yaml.org,2002:seq')
      return node.items.map((item) => this.read(item))
    }
    return scalarValue(node)
  }

  #map(node: YAMLMap.Parsed): unknown {
    checkTag(node, 'tag:yaml.org,2002:map')
    const members = new Map<string, unknown>()
    const add = (name: string, value: unknown, offset: number) => {
      if (members.has(name)) throw new YamlError(offset, `${name}: duplicate key`)
      members.set(name, value)
    }
    for (const { key, value } of node.items) {
      const offset = key.range[0]
      if (isMergeKey(key))
        for (const [name, merged] of mergedMembers(this.read(value), offset)) add(name, merged, offset)
      else add(this.#key(key, offset), this.read(value), offset)
    }
    return Object.fromEntries(members)
  }

  /** Returns the name of a member; Kubernetes converts integers and booleans to strings. */
  #key(key: ParsedNode, offset: number): string {
    if (isScalar(key) && key.anchor === undefined && key.tag === undefined && key.type === 'PLAIN') {
      const { type, value } = readPlain(key.source)
      if (type === 'integer' && value <= MAX_KEY) return String(value)
    }
    const value = this.read(key)
    if (typeof value === 'string') return value
    if (typeof value === 'boolean') return String(value)
    throw new YamlError(offset, 'a key that is not a string: write it in quotes')
  }
}

/** Throws YamlError when a collection has a tag other than that of its JSON type. */
function checkTag({ tag, range }: { tag?: string; range: readonly [number, number, number] }, expected: string): void {
  if (tag !== undefined && tag !== '!' && tag !== expected) throw new YamlError(range[0], `unsupported tag ${tag}`)
}

function isMergeKey(key: ParsedNode): boolean {
  return isScalar(key) && key.source === '<<' && key.type === 'PLAIN' && key.tag === undefined
}

/** Returns the members that a merge key adds. */
function mergedMembers(value: unknown, offset: number): [string, unknown][] {
  return (Array.isArray(value) ? value : [value]).flatMap((source: unknown) => {
    if (!isObject(source)) throw new YamlError(offset, '<<: not an object or a list of objects')
    return Object.entries(source)
  })
}

/** Explicit tags with the value types that they accept. */
const SCALAR_TAGS: Readonly<Record<string, readonly string[]>> = {
  'tag:yaml.org,2002:int': ['integer'],
  'tag:yaml.org,2002:float': ['integer', 'float'],
  'tag:yaml.org,2002:bool': ['boolean'],
  'tag:yaml.org,2002:null': ['null'],
}

function scalarValue({ tag, type, source, range }: Scalar.Parsed): unknown {
  if (tag === undefined ? type !== 'PLAIN' : ['!', 'tag:yaml.org,2002:str'].includes(tag)) return source
  if (source.startsWith('?')) throw new YamlError(range[0], `${source.slice(0, 40)}: write it in quotes`)
  const scalar = readPlain(source)
  if (tag !== undefined && SCALAR_TAGS[tag]?.includes(scalar.type) !== true)
    throw new YamlError(range[0], `unsupported tag ${tag} of ${JSON.stringify(source.slice(0, 40))}`)
  if (scalar.type === 'float' && Number.isNaN(scalar.value))
    throw new YamlError(range[0], 'infinity and NaN cannot be written in JSON: quote it if text is meant')
  return scalar.type === 'integer' ? Number(scalar.value) : scalar.value
}
