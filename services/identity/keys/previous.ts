import { readdir, readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { type PublicKey, readPublicKeys } from '@plat/keys'
import { CLASSICAL_AND_ML_DSA } from '@plat/tokens'

/** Retired keys at most. */
const MAX_PREVIOUS_KEYS = 64

/** Keys of flag `-previous-keys`: PEM files, public or private, or folders of them. Rejects naming the file that is odd. */
export async function readPreviousKeys(paths: readonly string[]): Promise<readonly PublicKey[]> {
  const keys: PublicKey[] = []
  for (const file of (await Promise.all(paths.map(filesOf))).flat()) {
    const text = await readFile(file, 'utf8').catch(() => {
      throw new Error(`-previous-keys: ${file} cannot be read`)
    })
    for (const key of readPublicKeys(text, `-previous-keys: ${file}`)) {
      if (!CLASSICAL_AND_ML_DSA.has(key.algorithm.name)) {
        throw new Error(`-previous-keys: ${file} holds a key for ${key.algorithm.name}, which signs no session token`)
      }
      keys.push(key)
    }
  }
  if (keys.length > MAX_PREVIOUS_KEYS) throw new Error(`-previous-keys: more than ${MAX_PREVIOUS_KEYS} keys`)
  return keys
}

async function filesOf(given: string): Promise<readonly string[]> {
  const found = await stat(given).catch(() => null)
  if (found === null || !found.isDirectory()) return [given]
  const names = (await readdir(given)).filter((name) => name.endsWith('.pem')).sort()
  return names.map((name) => path.join(given, name))
}
