import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type PublicKey, readPublicKeys } from '@plat/keys'
import { KeySet } from '@plat/tokens'

/** Whose licences count: their Ed25519 keys. */
export interface LicenseAuthority {
  /** How many keys there are. */
  readonly size: number
  /** The key of this thumbprint. */
  find(kid: string | null): PublicKey | null
}

/** Where a build keeps the keys of whoever issues licences for it: PEM blocks, public halves. */
const BUILD_KEYS = path.join(import.meta.dirname, 'authority.pem')

/** Nobody issues licences. */
export const NO_AUTHORITY: LicenseAuthority = new KeySet()

/**
 * The authority of this build. A build without keys, such as a checkout, has none: no licence is valid there. Rejects when the file has no
 * keys that can be used.
 */
export async function buildAuthority(file = BUILD_KEYS): Promise<LicenseAuthority> {
  try {
    return readAuthority(await readFile(file, 'utf8'), file)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return NO_AUTHORITY
    throw error
  }
}

/** The authority of a PEM text. Throws one line with `name` when it holds no key that can be one. */
export function readAuthority(text: string, name: string): LicenseAuthority {
  const keys = readPublicKeys(text, name)
  if (keys.some(({ algorithm }) => algorithm.name !== 'EdDSA')) throw new Error(`${name}: must hold Ed25519 keys only`)
  return new KeySet(keys)
}
