import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type AlgorithmName, type Signer, signerOf } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'

/** A checkpoint key in files. */
export interface TestKey {
  /** `file:///…` of the private key. */
  readonly uri: string
  readonly path: string
  readonly pub: string
  readonly signer: Signer
}

/** Creates a key pair in a temporary folder. */
export async function keyFiles(algorithm: AlgorithmName = 'EdDSA'): Promise<TestKey> {
  const dir = tempFolder()
  const [path, pub] = [join(dir, 'key.pem'), join(dir, 'pub.pem')]
  const key = makers[algorithm]()
  const signer = signerOf(key, 'test key')
  await writeFile(path, key.export({ format: 'pem', type: 'pkcs8' }))
  await writeFile(pub, signer.publicKey.key.export({ format: 'pem', type: 'spki' }))
  return { uri: pathToFileURL(path).href, path, pub, signer }
}

const makers: Readonly<Record<AlgorithmName, () => KeyObject>> = {
  EdDSA: () => generateKeyPairSync('ed25519').privateKey,
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  'ML-DSA-44': () => generateKeyPairSync('ml-dsa-44').privateKey,
  'ML-DSA-65': () => generateKeyPairSync('ml-dsa-65').privateKey,
  'ML-DSA-87': () => generateKeyPairSync('ml-dsa-87').privateKey,
}
