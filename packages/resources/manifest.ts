import { closest, isObject } from '@plat/core'
import { readYaml, type YamlText } from '@plat/kubernetes'
import { isMap, isNode, isSeq, type YAMLMap } from 'yaml'
import type { FieldProblem } from './check.ts'
import { problemLine } from './decode.ts'
import { CLUSTER_ONLY, isKind, type Kind, kinds, type Manifest } from './kinds/kinds.ts'
import { isManifest, validate, withDefaults } from './validate.ts'

/** Maximum size of a resource file in bytes, as for objects of an API server. */
export const MANIFEST_MAX_BYTES = 1024 * 1024

/** One problem of a text, with its line (from 1). */
export interface TextProblem {
  readonly line: number
  readonly path: string
  /** `spec.tier: Required value`. */
  readonly message: string
}

export interface ParsedManifest<K extends Kind> {
  readonly object: Manifest<K> | null
  /** One line each: `3: spec.tier: Required value`. */
  readonly problems: readonly string[]
}

/**
 * Parses one YAML (or JSON) document as an object of `kind`, strictly, with defaults filled in. YAML is parsed as by kubectl (`readYaml`): `yes` is
 * a boolean and `012` is octal, so that a file has the same meaning.
 */
export function parseResource<K extends Kind>(kind: K, text: string): ParsedManifest<K> {
  const { object, problems } = readManifest(kind, text)
  return { object, problems: problems.map(({ line, message }) => `${line}: ${message}`) }
}

/** An object, or why a text is none. */
export interface ManifestResult {
  readonly object: Manifest | null
  readonly problems: readonly TextProblem[]
}

/** Like `parseResource`, with structured problems. */
export function readManifest<K extends Kind>(
  kind: K,
  text: string,
): { object: Manifest<K> | null; problems: readonly TextProblem[] } {
  const yaml = readText(text)
  return 'failed' in yaml ? yaml.failed : asKind(kind, yaml)
}

/** Like `readManifest`, of the kind that the document names: one that files can declare. */
export function readAnyManifest(text: string): ManifestResult {
  const yaml = readText(text)
  if ('failed' in yaml) return yaml.failed
  const kind = isObject(yaml.value) ? yaml.value.kind : undefined
  if (isKind(kind) && !Object.hasOwn(CLUSTER_ONLY, kinds[kind].plural)) return asKind(kind, yaml)
  return failure(lineAt(yaml, 'kind'), unusableKind(kind))
}

function unusableKind(kind: unknown): string {
  if (isKind(kind)) return `kind: ${CLUSTER_ONLY[kinds[kind].plural]}`
  if (typeof kind !== 'string' || kind === '') return 'kind: Required value'
  const known = Object.keys(kinds)
    .filter(isKind)
    .filter((one) => !Object.hasOwn(CLUSTER_ONLY, kinds[one].plural))
  const meant = closest(kind, known)
  return `kind: ${JSON.stringify(kind)} is not a kind of plat${meant === null ? `: there are ${known.join(', ')}` : `, did you mean "${meant}"?`}`
}

function readText(text: string): YamlText | { readonly failed: { object: null; problems: TextProblem[] } } {
  if (text.length > MANIFEST_MAX_BYTES) return { failed: failure(1, `larger than ${MANIFEST_MAX_BYTES} bytes`) }
  const yaml = readYaml(text)
  if (yaml.problems.length === 0) return yaml
  return { failed: { object: null, problems: yaml.problems.map((problem) => ({ ...problem, path: '' })) } }
}

function asKind<K extends Kind>(
  kind: K,
  yaml: YamlText,
): { object: Manifest<K> | null; problems: readonly TextProblem[] } {
  const filled = withDefaults(kind, yaml.value)
  const problems = validate(kind, filled)
  if (problems.length === 0 && isManifest(kind, filled)) return { object: filled, problems: [] }
  return { object: null, problems: problems.map((problem) => located(problem, yaml)) }
}

function failure(line: number, message: string): { object: null; problems: TextProblem[] } {
  return { object: null, problems: [{ line, path: '', message }] }
}

function located(problem: FieldProblem, yaml: YamlText): TextProblem {
  return { line: lineAt(yaml, problem.path), path: problem.path, message: problemLine(problem) }
}

/** Returns the line (from 1) of each field of a YAML or JSON text; a missing field has the line of its parent. */
export function linesOf(text: string, paths: readonly string[]): number[] {
  const yaml = readYaml(text)
  return paths.map((path) => lineAt(yaml, path))
}

function lineAt({ document, lines }: YamlText, path: string): number {
  const at = offsetOf(document, path)
  return at === null ? 1 : lines.linePos(at).line
}

/** Pairs by key: searching a large map for each of many problems would be quadratic. */
const pairs = new WeakMap<YAMLMap, ReadonlyMap<string, YAMLMap['items'][number]>>()

function pairsOf(node: YAMLMap): ReadonlyMap<string, YAMLMap['items'][number]> {
  const known = pairs.get(node)
  if (known !== undefined) return known
  const fresh = new Map(node.items.map((item) => [String(item.key), item]))
  pairs.set(node, fresh)
  return fresh
}

/** Returns the offset of the deepest existing part of a path; a missing field is reported at its parent. */
function offsetOf(document: YamlText['document'], path: string): number | null {
  let node: unknown = document?.contents
  let offset: number | null = null
  for (const step of path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[([^[\]]*)\]|([^.[\]]+)/g)) {
    const name = step[1] ?? step[2] ?? step[3] ?? ''
    if (isMap(node)) {
      const pair = pairsOf(node).get(name)
      if (pair === undefined) break
      if (isNode(pair.key) && pair.key.range) offset = pair.key.range[0]
      node = pair.value
    } else if (isSeq(node)) {
      node = node.items[Number(name)]
      if (isNode(node) && node.range) offset = node.range[0]
    } else break
  }
  return offset
}
