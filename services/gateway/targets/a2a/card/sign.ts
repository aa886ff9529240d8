import { canonicalJson, encodeBase64url, reasonOf } from '@plat/core'
import { fileKeys, type KeyStore, type Signer } from '@plat/keys'

/** The card with a signature (A2A 1.0, section 8.4: a JWS over the canonical form of the card, RFC 7515 and RFC 8785). `jku`: URL of the key. */
export async function signedCard(card: object, signer: Signer, jku: string): Promise<object> {
  const header = encoded(JSON.stringify({ alg: signer.alg, typ: 'JOSE', kid: signer.kid, jku }))
  const input = [header, encoded(canonicalJson(card))].join('.')
  const signature = encodeBase64url(await signer.sign(Buffer.from(input, 'latin1')))
  return { ...card, signatures: [{ protected: header, signature }] }
}

/** Opens the keys that URIs name. */
export type CardKeys = Pick<KeyStore, 'openSigner'>

/** Opens `a2a.cardSigningKey`. Throws one line naming it. */
export async function openCardSigner(uri: string, keys: CardKeys = fileKeys): Promise<Signer> {
  const signer = await keys.openSigner(uri).catch((error: unknown) => {
    throw new Error(`a2a.cardSigningKey: ${reasonOf(error)}`, { cause: error })
  })
  if (signer.alg === 'EdDSA') return signer
  throw new Error('a2a.cardSigningKey: must be an Ed25519 key, such as `plat keys generate` writes')
}

function encoded(text: string): string {
  return encodeBase64url(Buffer.from(text, 'utf8'))
}
