import { type FileWatch, watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import { type AlgorithmName, type PublicKey, readPublicKeys } from '@plat/keys'
import type { Log } from '@plat/process'
import { CLASSICAL } from './algorithms.ts'
import { type KeyDocument, readJwks } from './jwks-source.ts'
import { KeySet, type KeySource } from './keyset.ts'
import { KeyTenants, noKeyTenants } from './tenants/key-tenants.ts'

/** Interval at which key files are checked, in milliseconds. */
const RELOAD_EVERY_MS = 10_000

export interface PemSourceOptions {
  readonly clock: Clock
  readonly log: Log
  /** A file with a key of another algorithm is refused. Default: EdDSA only. */
  readonly algorithms?: ReadonlySet<AlgorithmName>
}

/**
 * Public keys in PEM or JWKS files, reloaded when they change. A missing or malformed file at start is an error; later the previous keys stay, and a
 * warning names the file.
 */
export function pemSource(paths: readonly string[], options: PemSourceOptions): KeySource {
  const { clock, log, algorithms = CLASSICAL } = options
  const byPath = new Map<string, KeyDocument>()
  const set = new KeySet([], algorithms)
  let problem: unknown = null
  const watches: FileWatch[] = paths.map((path) =>
    watchFile({
      path,
      everyMs: RELOAD_EVERY_MS,
      clock,
      onBytes(bytes) {
        byPath.set(path, readSessionKeys(bytes, path, algorithms))
        // In the order of the paths, whichever was read first.
        const documents = paths.map((each) => byPath.get(each)).filter((one) => one !== undefined)
        const entries = documents.flatMap((one) => one.entries)
        set.replace(entries, KeyTenants.merge(documents.map(({ tenants }) => tenants)))
      },
      onError(error) {
        problem = error
        log.warn({ path, error: String(error) }, 'key file could not be read, the old keys stay in use')
      },
    }),
  )
  return {
    get revision() {
      return set.revision
    },
    get size() {
      return set.size
    },
    get tenants() {
      return set.tenants
    },
    find: (kid) => set.find(kid),
    refresh: () => null,
    async start() {
      for (const watch of watches) await watch.check()
      if (problem !== null) throw problem
    },
    close() {
      for (const watch of watches) watch.stop()
    },
  }
}

function readSessionKeys(bytes: Uint8Array | null, path: string, algorithms: ReadonlySet<AlgorithmName>): KeyDocument {
  if (bytes === null) throw new Error(`${path}: missing`)
  const text = Buffer.from(bytes).toString('utf8')
  const document = text.trimStart().startsWith('{') ? readJwksFile(bytes, path) : readPem(text, path)
  const odd = document.entries.find(([, key]) => !algorithms.has(key.algorithm.name))
  if (odd !== undefined) {
    const names = [...algorithms].join(', ')
    throw new Error(`${path}: holds a key for ${odd[1].algorithm.name}; only keys for ${names} are accepted here`)
  }
  return document
}

/** PEM has no `kid` and no tenant: the thumbprint is the `kid`. */
function readPem(text: string, path: string): KeyDocument {
  const keys: readonly PublicKey[] = readPublicKeys(text, path)
  return { entries: keys.map((key) => [key.kid, key]), tenants: noKeyTenants }
}

function readJwksFile(bytes: Uint8Array, path: string): KeyDocument {
  try {
    return readJwks(bytes)
  } catch (error) {
    throw new Error(`${path}: ${error instanceof Error ? error.message : 'unreadable'}`)
  }
}
