import { reasonOf } from '@plat/core'
import { type KeyStore, readKeyUri, type Signer } from '@plat/keys'
import { type KeyUse, openKeyFile } from './rolling.ts'

/** A key that a flag names. */
export interface KeySource {
  /** Path of its file, or its URI in a key service. */
  readonly path: string
  /** Rejects with one line that names the flag and the key. */
  open(): Promise<Signer>
}

export function isKeyFile(uriOrPath: string): boolean {
  return readKeyUri(uriOrPath).kind === 'file'
}

/** Throws one line for a malformed URI. */
export function keySource(uriOrPath: string, use: KeyUse, keys: KeyStore): KeySource {
  const uri = readKeyUri(uriOrPath)
  if (uri.kind === 'file') return { path: uri.path, open: () => openKeyFile(uri.path, use) }
  return {
    path: uriOrPath,
    async open() {
      const signer = await keys.openSigner(uriOrPath).catch((error: unknown) => {
        throw new Error(`${use.flag}: ${reasonOf(error)}`)
      })
      if (use.algorithms.names.includes(signer.alg)) return signer
      throw new Error(`${use.flag}: ${uriOrPath} holds a key for ${signer.alg}; ${use.algorithms.because}`)
    },
  }
}
