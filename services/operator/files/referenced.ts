import { readdir, realpath, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { readText } from '@plat/config'
import { type Manifest, writeWhole } from '@plat/resources'
import { DOCUMENT_MAX_BYTES } from '../openapi/apis.ts'
import { fileName, isBelow, sourceOf } from '../openapi/source.ts'
import { bundleOf, credentialFiles } from '../render/auth.ts'
import type { ReferencedTexts } from '../render/declared.ts'
import { serverProblems } from '../validate/server.ts'

/** Largest key of a Secret or ConfigMap, in bytes; a cluster allows 1 MiB for all keys together. */
const MAX_VALUE_BYTES = 1024 * 1024

/** Names of files that are written here, and may be removed again. */
const CREDENTIAL = /\.(?:token|client-id|client-secret|crt|key)$/

export interface ReferencedDirs {
  /** Where Secrets stand as files: `<namespace>/<name>/<key>`. */
  readonly secretsDir: string
  /** Where ConfigMaps stand as files, likewise. */
  readonly configMapsDir: string
  /** Base of the paths of OpenAPI documents; absent: none can be read. */
  readonly documentsDir?: string
}

/** Values that MCPServers reference. Missing ones are absent. */
export interface Referenced {
  readonly secrets: ReferencedTexts
  /** CA bundles in ConfigMaps. */
  readonly bundles: ReferencedTexts
  /** OpenAPI documents in files and ConfigMaps, and the CA bundles. */
  readonly documents: ReferencedTexts
}

/** Reads what these servers refer to. A refused server is not read for: its names may lead anywhere. */
export async function readReferenced(
  servers: readonly Manifest<'MCPServer'>[],
  { secretsDir, configMapsDir, documentsDir }: ReferencedDirs,
): Promise<Referenced> {
  const good = servers.filter((server) => serverProblems(server).length === 0)
  const secrets = good.flatMap((server) => credentialFiles(server).map(({ from }) => from))
  const bundles = good.map(bundleOf).filter((from) => from !== null)
  const caBundles = await readAll(configMapsDir, bundles)
  const withDocument = good.filter(({ spec }) => spec.openapi !== undefined)
  const configMaps = withDocument
    .map(sourceOf)
    .flatMap(({ field, name }) => (field === 'configMapRef' ? (name ?? []) : []))
  const files = withDocument.flatMap(({ spec: { openapi } }) => openapi?.file ?? [])
  const documents = [
    ...caBundles.texts,
    ...(await readAll(configMapsDir, configMaps)).texts,
    ...(documentsDir === undefined ? [] : await readFiles(documentsDir, files)),
  ]
  return {
    secrets: await readAll(secretsDir, secrets),
    bundles: caBundles,
    documents: { texts: new Map(documents), withheld: new Map() },
  }
}

/** Reads files below a directory; one to which a link leads elsewhere is not read. */
async function readFiles(dir: string, paths: readonly string[]): Promise<readonly (readonly [string, string])[]> {
  const texts: (readonly [string, string])[] = []
  for (const path of new Set(paths)) {
    const real = await realpath(join(dir, path)).catch(() => null)
    if (real === null || !isBelow(relative(await realpath(dir), real))) continue
    const text = await readText(real, DOCUMENT_MAX_BYTES)
    if (text !== null) texts.push([fileName(path), text])
  }
  return texts
}

async function readAll(dir: string, names: readonly string[]): Promise<ReferencedTexts> {
  const texts = new Map<string, string>()
  for (const name of new Set(names)) {
    const text = await readText(join(dir, name), MAX_VALUE_BYTES)
    if (text !== null) texts.set(name, text)
  }
  return { texts, withheld: new Map() }
}

/** Writes these credential files into `dir`, for the owner alone, and removes all others. One whose content stays the same is not written. */
export async function writeCredentials(dir: string, files: ReadonlyMap<string, string>): Promise<void> {
  for (const [name, text] of files) {
    const path = join(dir, name)
    if ((await readText(path, MAX_VALUE_BYTES)) !== text) await writeWhole(path, text)
  }
  const present = await readdir(dir).catch(() => [])
  const stale = present.filter((name) => CREDENTIAL.test(name) && !files.has(name))
  for (const name of stale) await rm(join(dir, name), { force: true })
}
