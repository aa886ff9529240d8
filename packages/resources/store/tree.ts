import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { closest, Slices } from '@plat/core'
import { splitDocuments } from '../documents.ts'
import { CLUSTER_ONLY, isClusterKind, isKind, type Kind, kinds, type Manifest } from '../kinds/kinds.ts'
import { MANIFEST_MAX_BYTES } from '../manifest.ts'
import { readAnyManifestAside, readManifestAside } from '../manifest-aside.ts'

/** Maximum number of resource files; more give a problem line. */
export const FILES_MAX = 20_000

/** Where an object is declared. */
export interface Place {
  /** Path below the folder. */
  readonly file: string
  /** Line at which its document begins, from 1. */
  readonly line: number
}

/** Content of a resource folder: the valid objects, and a line for each problem. */
export interface Tree {
  readonly objects: readonly { readonly object: Manifest; readonly place: Place }[]
  /** `agents/default/x.yaml:4: spec.tier: Required value`, sorted. */
  readonly problems: readonly string[]
  /** Paths of all files, including invalid ones. */
  readonly files: ReadonlySet<string>
  /** Files with a problem: objects that were in one of them may come back. */
  readonly broken: ReadonlySet<string>
}

/** Returns the path of an object below the folder; cluster-scoped objects have no namespace folder. */
export function pathOf(kind: Kind, { namespace, name }: { namespace: string; name: string }): string {
  return join(kinds[kind].plural, namespace, `${name}.yaml`)
}

/**
 * Reads a folder: `<plural>/<namespace>/<name>.yaml` has the object of its path and may have further documents, and `<any>.yaml` has documents
 * of any kind. An invalid document gives a problem line; the others load. An object that is declared twice is not loaded at all, because the
 * two may differ. A missing folder is empty.
 */
export async function readTree(dir: string): Promise<Tree> {
  const reading = new Reading(dir)
  for (const entry of await entries(dir)) {
    const kind = Object.hasOwn(CLUSTER_ONLY, entry.name) ? null : kindOf(entry.name)
    if (kind !== null && entry.isDirectory()) await readKind(reading, kind)
    else if (!entry.isDirectory() && entry.name.endsWith('.yaml')) await readOne(reading, null, entry.name)
    else reading.problem(entry.name, `: ${strangeEntry(entry.name, entry.isDirectory())}`)
  }
  return reading.tree()
}

/** Collects what is read. */
class Reading {
  readonly dir: string
  readonly files = new Set<string>()
  readonly slices = new Slices()
  readonly #placed = new Map<string, Tree['objects'][number][]>()
  readonly #problems: string[] = []
  readonly #broken = new Set<string>()
  #documents = 0

  constructor(dir: string) {
    this.dir = dir
  }

  /** `text` begins with `: `, or with the line. */
  problem(path: string, text: string): void {
    this.#problems.push(`${path}${text}`)
    this.#broken.add(path)
  }

  add(object: Manifest, place: Place): void {
    const path = pathOf(object.kind, object.metadata)
    const before = this.#placed.get(path)
    if (++this.#documents > FILES_MAX) this.problem(place.file, `:${place.line}: more than ${FILES_MAX} documents`)
    else if (before === undefined) this.#placed.set(path, [{ object, place }])
    else before.push({ object, place })
  }

  tree(): Tree {
    const objects: Tree['objects'][number][] = []
    for (const all of this.#placed.values()) {
      const [first, second] = all
      if (first !== undefined && second === undefined) objects.push(first)
      else for (const one of all) this.#reportTwice(one, all)
    }
    return { objects, problems: this.#problems.toSorted(), files: this.files, broken: this.#broken }
  }

  #reportTwice({ object, place }: Tree['objects'][number], all: Tree['objects']): void {
    const other = all.find((one) => one.place !== place)?.place
    this.problem(
      place.file,
      `:${place.line}: ${object.kind} ${named(object)} is also in ${other?.file}:${other?.line}; remove one of them`,
    )
  }
}

async function readKind(reading: Reading, kind: Kind): Promise<void> {
  const plural = kinds[kind].plural
  for (const folder of await entries(join(reading.dir, plural))) {
    const path = join(plural, folder.name)
    if (isClusterKind(kind)) {
      if (!folder.isDirectory()) await readOne(reading, kind, path)
      else reading.problem(path, `: objects of this kind have no namespace: ${plural}/<name>.yaml`)
      continue
    }
    if (!folder.isDirectory()) {
      reading.problem(path, `: must be in a folder of its namespace: ${plural}/<namespace>/<name>.yaml`)
      continue
    }
    for (const file of await entries(join(reading.dir, path))) await readOne(reading, kind, join(path, file.name))
  }
}

/** Reads the documents of a file; `kind`: that of its folder, null for a file of any kinds. */
async function readOne(reading: Reading, kind: Kind | null, path: string): Promise<void> {
  if (!path.endsWith('.yaml')) return reading.problem(path, ': must end in .yaml')
  reading.files.add(path)
  if (reading.files.size > FILES_MAX) return reading.problem(path, `: more than ${FILES_MAX} files`)
  const text = await readText(join(reading.dir, path))
  if (text === null) return
  if (typeof text !== 'string') return reading.problem(path, `: ${text.fault}`)
  const documents = splitDocuments(text)
  if (kind !== null && documents.length <= 1) return readSingle(reading, kind, path, text)
  const found: Tree['objects'][number][] = []
  let isWhole = true
  for (const { start, end, line } of documents) {
    if (reading.slices.isOver) await reading.slices.next()
    const { object, problems } = await readAnyManifestAside(text.slice(start, end))
    for (const problem of problems) reading.problem(path, `:${line - 1 + problem.line}: ${problem.message}`)
    if (object === null) isWhole = false
    else found.push({ object, place: { file: path, line } })
  }
  const hasNamed = found.some(({ object }) => pathOf(object.kind, object.metadata) === path)
  if (kind !== null && isWhole && !hasNamed) {
    return reading.problem(path, `: none of its documents is the ${kind} of that path; move them to ${basename(path)}`)
  }
  for (const { object, place } of found) reading.add(object, place)
}

/** Reads a file that has only the object of its path. */
async function readSingle(reading: Reading, kind: Kind, path: string, text: string): Promise<void> {
  const { object, problems } = await readManifestAside(kind, text)
  for (const { line, message } of problems) reading.problem(path, `:${line}: ${message}`)
  if (object === null) return
  const expected = pathOf(kind, object.metadata)
  if (expected === path) reading.add(object, { file: path, line: splitDocuments(text)[0]?.line ?? 1 })
  else reading.problem(path, `: metadata names ${named(object)}, which belongs into ${expected}`)
}

function named({ metadata: { namespace, name } }: Manifest): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

/** Returns null when the file is gone since the folder was listed. */
async function readText(path: string): Promise<string | null | { fault: string }> {
  try {
    const bytes = await readFile(path)
    if (bytes.length > MANIFEST_MAX_BYTES) return { fault: `larger than ${MANIFEST_MAX_BYTES} bytes` }
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    if (isMissing(error)) return null
    return { fault: error instanceof TypeError ? 'not UTF-8' : `cannot be read (${codeOf(error)})` }
  }
}

/** Sorted; hidden and temporary files are not resources. */
async function entries(dir: string) {
  try {
    const found = await readdir(dir, { withFileTypes: true })
    return found.filter(({ name }) => !name.startsWith('.')).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

export function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error))
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}

function kindOf(plural: string): Kind | null {
  return (
    Object.keys(kinds)
      .filter(isKind)
      .find((kind) => kinds[kind].plural === plural) ?? null
  )
}

function strangeEntry(name: string, isFolder: boolean): string {
  if (!isFolder) return 'must be a .yaml file, or a folder of a kind'
  if (Object.hasOwn(CLUSTER_ONLY, name)) return String(CLUSTER_ONLY[name])
  const plurals = Object.values(kinds).map(({ plural }) => plural)
  const guess = closest(name, plurals)
  return `no kind has this name${guess === null ? `: there are ${plurals.join(', ')}` : `, did you mean "${guess}"?`}`
}
