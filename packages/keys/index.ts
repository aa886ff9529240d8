export { type Algorithm, type AlgorithmName, algorithms, type MldsaName } from './algorithms.ts'
export { CIPHER_KEY_BYTES, type Cipher, cipherOf, openCipher } from './cipher.ts'
export { der, derOid } from './der.ts'
export { openBytes, type SealedBytes, sealBytes } from './envelope.ts'
export {
  generateKeyFiles,
  type KeyFiles,
  keyFilePath,
  readPrivateKey,
  readPublicKeys,
} from './files.ts'
export { type PublicJwk, type PublicKey, publicKeyOf, readPublicJwk, thumbprint } from './jwk.ts'
export { KeyServiceError } from './key-service-error.ts'
export type { Pkcs11Uri } from './pkcs11-uri.ts'
export { createSelfSigned, type SelfSigned, type SelfSignedOptions } from './self-signed.ts'
export { ephemeralSigner, type LocalSigner, openSigner, type Signer, signerOf } from './signer.ts'
export { fileKeys, type KeyStore } from './store.ts'
export { type KeyPurpose, type KeyUri, keyUriProblem, readKeyUri } from './uri.ts'
