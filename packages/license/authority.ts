import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type PublicKey, readPublicKeys } from '@plat/keys'
import { KeySet } from '@plat/tokens'

/** Ed25519 keys that may sign licences. */
export interface LicenseAuthority {
  /** How many keys there are. */
  readonly size: number
  /** The key of this thumbprint. */
  find(kid: string | null): PublicKey | null
}

/** Public keys of the licence issuer in a build: PEM blocks. */
const BUILD_KEYS = fileURLToPath(new URL('authority.pem', import.meta.url))

/** An authority without keys: no licence is valid. */
export const NO_AUTHORITY: LicenseAuthority = new KeySet()

/**
 * Returns the authority of this build. A build without keys, such as a checkout, has none: no licence is valid there. Rejects when the file has no
 * usable keys.
 */
export async function buildAuthority(file = BUILD_KEYS): Promise<LicenseAuthority> {
  try {
    return readAuthority(await readFile(file, 'utf8'), file)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return NO_AUTHORITY
    throw error
  }
}

/** Reads an authority from PEM text. Throws one line with `name` when it holds no usable key. */
export function readAuthority(text: string, name: string): LicenseAuthority {
  const keys = readPublicKeys(text, name)
  if (keys.some(({ algorithm }) => algorithm.name !== 'EdDSA')) throw new Error(`${name}: must hold Ed25519 keys only`)
  return new KeySet(keys)
}
