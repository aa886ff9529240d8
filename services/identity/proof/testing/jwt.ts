import { createPublicKey, type KeyObject, sign } from 'node:crypto'

/** The public JWK of a key. */
export function jwkOf(key: KeyObject): object {
  return createPublicKey(key).export({ format: 'jwk' })
}

/** A compact JWS by hand, so that any header can be had. The algorithm of the signature goes by the key. */
export function signJwt(header: object, claims: object, key: KeyObject): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${encode(header)}.${encode(claims)}`
  const digest = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  const signature = sign(digest, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}
