import { constants, createECDH, type KeyObject, privateEncrypt } from 'node:crypto'

/** DigestInfo of SHA-256 before a digest (RFC 8017, section 9.2). */
const PREFIX = Buffer.from('3031300d060960864801650304020105000420', 'hex')
/** Order of P-256. */
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** Signs a digest as key services do; `sign` of Node takes messages only. RSA: PKCS#1 1.5; P-256: two numbers of 32 bytes (FIPS 186-5, section 6.4.1). */
export function signDigest(digest: Uint8Array, key: KeyObject): Buffer {
  if (key.asymmetricKeyType === 'rsa') {
    return privateEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, Buffer.concat([PREFIX, digest]))
  }
  const once = createECDH('prime256v1')
  const r = numberOf(once.generateKeys().subarray(1, 33)) % N
  const d = numberOf(Buffer.from(key.export({ format: 'jwk' }).d ?? '', 'base64url'))
  const s = (inverse(numberOf(once.getPrivateKey())) * (numberOf(digest) + r * d)) % N
  return Buffer.concat([r, s].map((number) => Buffer.from(number.toString(16).padStart(64, '0'), 'hex')))
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}

/** Fermat: a^(N-2). */
function inverse(number: bigint): bigint {
  let [result, base] = [1n, number % N]
  for (let power = N - 2n; power > 0n; power >>= 1n) {
    if (power & 1n) result = (result * base) % N
    base = (base * base) % N
  }
  return result
}
