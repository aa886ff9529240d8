import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { AlgorithmName } from '@plat/keys'

/** A new private key for the algorithm, in PEM (PKCS8). */
export function newKeyPem(algorithm: AlgorithmName): string {
  return newKey(algorithm).export({ format: 'pem', type: 'pkcs8' }).toString()
}

function newKey(algorithm: AlgorithmName): KeyObject {
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519').privateKey
  if (algorithm === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  if (algorithm === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  if (algorithm === 'ML-DSA-44') return generateKeyPairSync('ml-dsa-44').privateKey
  return generateKeyPairSync(algorithm === 'ML-DSA-65' ? 'ml-dsa-65' : 'ml-dsa-87').privateKey
}
