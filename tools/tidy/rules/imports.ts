import path from 'node:path/posix'
import { COMPOSITION, LIMITS } from '../limits.ts'
import { type Finding, findingAt, isNode, nodesOf, type Rule, type Source } from '../source.ts'

/** An import in a file. */
interface Import {
  readonly from: string
  readonly start: number
}

const IMPORTING = ['ImportDeclaration', 'ExportNamedDeclaration', 'ExportAllDeclaration', 'ImportExpression']

/** Workspaces that are found two folders deep; the others are one folder. */
const NESTED_HOMES = new Set(['packages', 'services', 'apps', 'examples', 'sdk'])

/** The private packages that are services and apps: only compositions above them may import them. */
const SERVICES = new Set(['@plat/gateway', '@plat/identity', '@plat/operator', '@plat/attestation'])
const TOPS = new Set(['@plat/cli', '@plat/bench', '@plat/quickstart', '@plat/tools'])

/** Inside the gateway: which folders each folder may import from. `compose.ts` and its neighbours may import all. */
const GATEWAY = 'services/gateway/'
const GATEWAY_LAYERS: Readonly<Record<string, readonly string[]>> = {
  call: ['call'],
  pipeline: ['pipeline', 'call'],
  planes: ['planes', 'pipeline', 'call'],
  admin: ['admin', 'call'],
}
/** Groups of features: each folder in one of them is a feature. */
export const FEATURE_GROUPS = ['authn', 'decide', 'content', 'targets', 'builtin', 'evidence', 'operate'] as const
/** Folders of the gateway that are imported by their face. */
const GATEWAY_FACE = new RegExp(
  `^services/gateway/(?:call|pipeline|admin|(?:planes|${FEATURE_GROUPS.join('|')})/[^/]+)$`,
)

/** Imports allowed in every layer: the interfaces of stages, planes and admin routes, and the metric table. */
const SHARED_TABLES = new Set(
  ['pipeline/stage.ts', 'pipeline/plane.ts', 'admin/index.ts', 'metrics.ts'].map((name) => GATEWAY + name),
)

/** Packages are the floor, services stand on them, apps on top; inside the gateway compose -> planes, features, pipeline -> call. */
export const direction: Rule = (source) => {
  const findings: Finding[] = []
  for (const { from, start } of importsOf(source)) {
    const wrong = from.startsWith('.') ? wrongPath(source, from) : wrongPackage(source, from)
    if (wrong !== null) findings.push(findingAt(source, start, 'import', `imports ${from}: ${wrong}`))
  }
  return findings
}

/**
 * An index file is the face of a package, a feature or a plane. A package's face re-exports and does nothing else; the
 * face of a feature or plane may hold what puts its parts together.
 */
export const faces: Rule = (source) => {
  if (path.basename(source.path) !== 'index.ts') return []
  const folder = path.dirname(source.path)
  if (GATEWAY_FACE.test(folder)) return []
  if (folder !== homeOf(source.path)) {
    return [findingAt(source, 0, 'index', 'an index file inside a package: import the file itself')]
  }
  const body = Array.isArray(source.program.body) ? source.program.body.filter(isNode) : []
  const code = body.find((node) => !IMPORTING.includes(node.type) || isNode(node.declaration))
  return code ? [findingAt(source, code.start, 'index', 'code in a face: move it to a file that says what it is')] : []
}

/** A file that imports many modules does many things; only the composition root has to. */
export const importCount: Rule = (source) => {
  if (COMPOSITION.some((file) => file.test(source.path))) return []
  const imports = nodesOf(source, 'ImportDeclaration').map(({ source: from }) => (isNode(from) ? from.value : null))
  const count = new Set(imports).size
  const message = `imports ${count} modules, more than ${LIMITS.imports}: split it by what it does`
  return count > LIMITS.imports ? [findingAt(source, 0, 'import-count', message)] : []
}

/** Every module that the file names. */
export function importsOf(source: Source): readonly Import[] {
  return nodesOf(source, ...IMPORTING).flatMap((node) => {
    const from = isNode(node.source) ? node.source.value : null
    return typeof from === 'string' ? [{ from, start: node.start }] : []
  })
}

/** Packages that import one another in a circle cannot be understood one by one. */
export function packageCircles(sources: readonly Source[]): readonly Finding[] {
  const uses = new Map<string, Map<string, Finding>>()
  for (const source of sources.filter(({ path: file, isTest }) => file.startsWith('packages/') && !isTest)) {
    const name = `@plat/${source.path.split('/')[1]}`
    const edges = uses.get(name) ?? new Map<string, Finding>()
    uses.set(name, edges)
    for (const { from, start } of importsOf(source)) {
      const other = from.split('/').slice(0, 2).join('/')
      const message = `imports ${other}, which leads back here: move the shared word down`
      if (from.startsWith('@plat/') && other !== name)
        edges.set(other, findingAt(source, start, 'package-circle', message))
    }
  }
  const findings: Finding[] = []
  for (const [name, edges] of uses)
    for (const [other, finding] of edges) if (leads(uses, other, name)) findings.push(finding)
  return findings
}

function leads(uses: ReadonlyMap<string, ReadonlyMap<string, unknown>>, from: string, to: string): boolean {
  const seen = new Set([from])
  for (const name of seen) for (const next of uses.get(name)?.keys() ?? []) seen.add(next)
  return seen.has(to)
}

function wrongPackage(source: Source, from: string): string | null {
  const name = from.split('/').slice(0, 2).join('/')
  const area = source.path.split('/')[0] ?? ''
  if (area === 'packages' && (SERVICES.has(name) || TOPS.has(name))) return 'a package imports packages only'
  if (area === 'services' && TOPS.has(name)) return 'a service imports packages only'
  const own = homeOf(source.path).replace(/^services\//, '@plat/')
  if (area === 'services' && SERVICES.has(name) && name !== own)
    return 'a service never imports another; a composition does'
  return null
}

function wrongPath(source: Source, from: string): string | null {
  const target = path.join(path.dirname(source.path), from)
  // Tests across processes may start the bench's servers and the examples, which export nothing.
  if (source.path.startsWith('test/') && /^(?:bench|examples)\//.test(target)) return null
  // A fuzz target is beside the code it tests; the helper of all targets is beside their runner.
  if (source.path.endsWith('.fuzz.ts') && target.startsWith('test/fuzz/')) return null
  if (homeOf(target) !== homeOf(source.path)) return 'it lies in another package: import it by name'
  if (!source.path.startsWith(GATEWAY) || !target.startsWith(GATEWAY) || source.isTest) return null
  if (SHARED_TABLES.has(target)) return null
  const [layer = '', feature] = source.path.slice(GATEWAY.length).split('/')
  const [targetLayer = '', targetFeature] = target.slice(GATEWAY.length).split('/')
  if (isFeatureGroup(layer)) {
    if (targetLayer === 'call' || (layer === targetLayer && feature === targetFeature)) return null
    return isFeatureGroup(targetLayer)
      ? 'features never import features: declare the small interface, compose.ts passes it'
      : 'a feature imports its own folder, call/ and packages only'
  }
  const allowed = GATEWAY_LAYERS[layer]
  if (allowed === undefined || allowed.includes(targetLayer)) return null
  return `${layer}/ imports ${allowed.map((name) => `${name}/`).join(', ')} and packages only`
}

function isFeatureGroup(folder: string): boolean {
  return FEATURE_GROUPS.some((group) => group === folder)
}

/** The workspace a file belongs to; `test` and `tools` are one. */
function homeOf(file: string): string {
  const [area = '', name = ''] = file.split('/')
  if (area === 'test') return 'tools'
  return NESTED_HOMES.has(area) ? `${area}/${name}` : area
}
