import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readText } from '@plat/config'
import { type Manifest, writeWhole } from '@plat/resources'
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
}

/** Values that MCPServers reference. Missing ones are absent. */
export interface Referenced {
  readonly secrets: ReferencedTexts
  /** CA bundles in ConfigMaps. */
  readonly bundles: ReferencedTexts
}

/** Reads what these servers refer to. A refused server is not read for: its names may lead anywhere. */
export async function readReferenced(
  servers: readonly Manifest<'MCPServer'>[],
  { secretsDir, configMapsDir }: ReferencedDirs,
): Promise<Referenced> {
  const good = servers.filter((server) => serverProblems(server).length === 0)
  const secrets = good.flatMap((server) => credentialFiles(server).map(({ from }) => from))
  const bundles = good.map(bundleOf).filter((from) => from !== null)
  return { secrets: await readAll(secretsDir, secrets), bundles: await readAll(configMapsDir, bundles) }
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
