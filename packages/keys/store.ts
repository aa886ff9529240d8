import { type Cipher, openCipher } from './cipher.ts'
import { openSigner, type Signer } from './signer.ts'

/** Opens the keys that URIs name. Both reject with one line that names the key, and contain no secret. */
export interface KeyStore {
  openSigner(uri: string): Promise<Signer>
  openCipher(uri: string): Promise<Cipher>
}

/** Keys in files only: paths and `file:///`. */
export const fileKeys: KeyStore = { openSigner, openCipher }
