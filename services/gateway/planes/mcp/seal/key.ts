import { mkdir, open, readFile } from 'node:fs/promises'
import path from 'node:path'
import { readSecret } from '@plat/config'
import { decodeBase64url, encodeBase64url, type Ids } from '@plat/core'
import { SEAL_KEY_BYTES } from './seal.ts'

/** Name of the file with a generated key. */
export const SEAL_KEY_FILE = 'seal-key'

export interface SealKeyOptions {
  readonly env: NodeJS.ProcessEnv
  /** Folder in which a key is generated if none is configured; null: the key is valid only for this process. */
  readonly stateDir: string | null
  /** Generates a secret once for all replicas, instead of in the state folder; null: there is no shared state. */
  readonly secret?: ((name: string, make: () => string) => Promise<string>) | null
  readonly ids: Ids
}

/**
 * Loads the keys that seal session ids: `PLAT_SEAL_KEY` or `PLAT_SEAL_KEY_FILE` (32 bytes each, base64url, separated by commas; the first
 * seals, all open), otherwise a key that is generated once in the shared state or the state folder. Throws if a key is malformed.
 */
export async function loadSealKeys(options: SealKeyOptions): Promise<Uint8Array[]> {
  const secret = readSecret(options.env, 'PLAT_SEAL_KEY')
  if (secret !== null) return decodeKeys(secret, 'PLAT_SEAL_KEY')
  const { ids, secret: shared = null } = options
  if (shared !== null)
    return decodeKeys(await shared(SEAL_KEY_FILE, () => newKey(ids)), 'the seal key of the state database')
  if (options.stateDir === null) return [options.ids.random(SEAL_KEY_BYTES)]
  const file = path.join(options.stateDir, SEAL_KEY_FILE)
  const text = (await readIfThere(file)) ?? (await makeKey(file, options.ids))
  return decodeKeys(text.trimEnd(), file)
}

function decodeKeys(text: string, source: string): Uint8Array[] {
  return text.split(',').map((part, index) => {
    const key = decodeBase64url(part.trim())
    if (key?.length === SEAL_KEY_BYTES) return key
    throw new Error(`${source}: key ${index + 1} is not ${SEAL_KEY_BYTES} bytes of base64url`)
  })
}

function newKey(ids: Ids): string {
  return encodeBase64url(ids.random(SEAL_KEY_BYTES))
}

/** Writes a new key. If another process wrote one first, returns that key. */
async function makeKey(file: string, ids: Ids): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  const text = `${newKey(ids)}\n`
  try {
    await using handle = await open(file, 'wx', 0o600)
    await handle.writeFile(text)
    await handle.sync()
    return text
  } catch (error) {
    const existing = isCode(error, 'EEXIST') ? await readIfThere(file) : null
    if (existing === null) throw error
    return existing
  }
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null
    throw error
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
