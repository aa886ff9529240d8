import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { closest } from '@plat/core'
import { CLUSTER_ONLY, isClusterKind, isKind, type Kind, kinds, type Manifest } from '../kinds/kinds.ts'
import { MANIFEST_MAX_BYTES } from '../manifest.ts'
import { readManifestAside } from '../manifest-aside.ts'

/** Maximum number of resource files; more give a problem line. */
export const FILES_MAX = 20_000

/** Content of a resource folder: the valid objects, and a line for each problem. */
export interface Tree {
  readonly objects: readonly Manifest[]
  /** `agents/default/x.yaml:4: spec.tier: Required value`, sorted. */
  readonly problems: readonly string[]
  /** Paths of all files, including invalid ones. */
  readonly files: ReadonlySet<string>
}

/** Returns the path of an object below the folder; cluster-scoped objects have no namespace folder. */
export function pathOf(kind: Kind, { namespace, name }: { namespace: string; name: string }): string {
  return join(kinds[kind].plural, namespace, `${name}.yaml`)
}

/**
 * Reads `<dir>/<plural>/<namespace>/<name>.yaml`, one object per file. An invalid file gives a problem line; the others load. A missing folder is
 * empty.
 */
export async function readTree(dir: string): Promise<Tree> {
  const reading: Reading = { dir, objects: [], problems: [], files: new Set() }
  for (const folder of await entries(dir)) {
    const kind = Object.hasOwn(CLUSTER_ONLY, folder.name) ? null : kindOf(folder.name)
    if (kind !== null && folder.isDirectory()) await readKind(reading, kind)
    else reading.problems.push(`${folder.name}: ${strangeFolder(folder.name, folder.isDirectory())}`)
  }
  return { objects: reading.objects, problems: reading.problems.toSorted(), files: reading.files }
}

interface Reading {
  readonly dir: string
  readonly objects: Manifest[]
  readonly problems: string[]
  readonly files: Set<string>
}

async function readKind(reading: Reading, kind: Kind): Promise<void> {
  const plural = kinds[kind].plural
  for (const folder of await entries(join(reading.dir, plural))) {
    const path = join(plural, folder.name)
    if (isClusterKind(kind)) {
      if (!folder.isDirectory()) await readOne(reading, kind, path)
      else reading.problems.push(`${path}: objects of this kind have no namespace: ${plural}/<name>.yaml`)
      continue
    }
    if (!folder.isDirectory()) {
      reading.problems.push(`${path}: must stand in a folder of its namespace: ${plural}/<namespace>/<name>.yaml`)
      continue
    }
    for (const file of await entries(join(reading.dir, path))) await readOne(reading, kind, join(path, file.name))
  }
}

async function readOne(reading: Reading, kind: Kind, path: string): Promise<void> {
  const problem = (text: string) => reading.problems.push(`${path}${text}`)
  if (!path.endsWith('.yaml')) return void problem(': must end in .yaml')
  reading.files.add(path)
  if (reading.files.size > FILES_MAX) return void problem(`: more than ${FILES_MAX} files`)
  const text = await readText(join(reading.dir, path))
  if (text === null) return
  if (typeof text !== 'string') return void problem(`: ${text.fault}`)
  const { object, problems } = await readManifestAside(kind, text)
  for (const { line, message } of problems) problem(`:${line}: ${message}`)
  if (object === null) return
  const expected = pathOf(kind, object.metadata)
  if (expected === path) reading.objects.push(object)
  else problem(`: metadata names ${named(object)}, which belongs into ${expected}`)
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

function strangeFolder(name: string, isFolder: boolean): string {
  if (!isFolder) return 'must stand in a folder of its kind: <plural>/<namespace>/<name>.yaml'
  if (Object.hasOwn(CLUSTER_ONLY, name)) return String(CLUSTER_ONLY[name])
  const plurals = Object.values(kinds).map(({ plural }) => plural)
  const guess = closest(name, plurals)
  return `no such kind${guess === null ? `: there are ${plurals.join(', ')}` : `, did you mean "${guess}"?`}`
}
