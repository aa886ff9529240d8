import { hash } from 'node:crypto'
import { isObject, readJson, withoutTrailing } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import type { PublicKey } from '@plat/keys'
import { isLogProof, type LogProof } from '@plat/ledger'
import { jurisdictionOf } from '@plat/resources/regions'

/** Maximum response size of a log, in bytes: an entry with its proof has a few thousand. */
const MAX_RESPONSE_BYTES = 128 * 1024
/** Id of a Rekor v1 entry: its leaf hash, optionally after the number of its tree. */
const ENTRY_ID = /\/([0-9a-f]{64}|[0-9a-f]{80})$/

/** A signed text for a log, which stores the hash of the text, the signature and the key. */
export interface Statement {
  readonly text: string
  /** Signature in the encoding of X.509. */
  readonly signature: Buffer
  readonly key: PublicKey
}

export interface RekorParts {
  readonly config: {
    readonly url: string
    readonly api: 'v1' | 'v2'
    readonly timeoutSeconds: number
    readonly jurisdiction?: string
  }
  readonly dialer: Pick<Dialer, 'fetchBytes'>
}

/** The log refused an entry, or its response is not a proof: one line. */
export class TransparencyLogError extends Error {}

export class Rekor {
  readonly #parts: RekorParts
  readonly #entries: string

  constructor(parts: RekorParts) {
    const { url, api } = parts.config
    this.#parts = parts
    this.#entries = `${withoutTrailing(url, '/')}/api/${api}/log/entries`
  }

  /** Submits a statement and returns the proof, of which only the form is checked. Rejects with `TransparencyLogError`. */
  async enter(statement: Statement): Promise<LogProof> {
    const isV1 = this.#parts.config.api === 'v1'
    const { status, json, location } = await this.#ask(JSON.stringify(isV1 ? entryV1(statement) : entryV2(statement)))
    if (status === 409 && isV1) return await this.#held(location)
    if (status !== 200 && status !== 201) throw new TransparencyLogError(`the log responded ${status}`)
    const proof = isV1 ? proofV1(json) : proofV2(json)
    if (proof === null) throw new TransparencyLogError('the log returned no inclusion proof')
    return proof
  }

  /** Fetches an existing entry: a crash came between the response and the record. */
  async #held(location: string): Promise<LogProof> {
    const id = ENTRY_ID.exec(location)?.[1]
    if (id === undefined) throw new TransparencyLogError('the log has the entry and does not return its location')
    const { status, json } = await this.#ask(null, `/${id}`)
    const proof = status === 200 ? proofV1(json) : null
    if (proof === null) throw new TransparencyLogError(`the log has the entry and responded ${status} without a proof`)
    return proof
  }

  async #ask(body: string | null, path = ''): Promise<{ status: number; json: unknown; location: string }> {
    const { config, dialer } = this.#parts
    try {
      const { status, headers, bytes } = await dialer.fetchBytes(this.#entries + path, 'sink', {
        ...(body !== null && { method: 'POST', body }),
        headers: { accept: 'application/json', ...(body !== null && { 'content-type': 'application/json' }) },
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: config.timeoutSeconds * 1000,
        jurisdiction: jurisdictionOf({ upstream: config.url, jurisdiction: config.jurisdiction }, null) ?? '',
      })
      return { status, json: readJson(bytes), location: headers.location ?? '' }
    } catch (error) {
      throw new TransparencyLogError(`no response from the log (${dialFault(error)})`)
    }
  }
}

/** Ed25519 needs the entry type with the whole text: the other one accepts only Ed25519ph. */
function entryV1({ text, signature, key }: Statement): object {
  const pem = Buffer.from(key.key.export({ format: 'pem', type: 'spki' })).toString('base64')
  const signed = { content: signature.toString('base64'), publicKey: { content: pem } }
  const apiVersion = '0.0.1'
  if (key.algorithm.name === 'EdDSA') {
    const data = { content: Buffer.from(text).toString('base64') }
    return { apiVersion, kind: 'rekord', spec: { data, signature: { ...signed, format: 'x509' } } }
  }
  const data = { hash: { algorithm: 'sha256', value: hash('sha256', text, 'hex') } }
  return { apiVersion, kind: 'hashedrekord', spec: { data, signature: signed } }
}

function entryV2({ text, signature, key }: Statement): object {
  const keyDetails = detailsOf(key)
  if (keyDetails === null) throw new TransparencyLogError('a log of api v2 does not accept keys of this type')
  const rawBytes = key.key.export({ format: 'der', type: 'spki' }).toString('base64')
  return {
    hashedRekordRequestV002: {
      digest: hash('sha256', text, 'base64'),
      signature: { content: signature.toString('base64'), verifier: { publicKey: { rawBytes }, keyDetails } },
    },
  }
}

/** Rekor v2 name of keys of this type, or null if it accepts none. */
export function detailsOf({ algorithm, key }: PublicKey): string | null {
  if (algorithm.name === 'ES256') return 'PKIX_ECDSA_P256_SHA_256'
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
  return algorithm.name === 'RS256' && [2048, 3072, 4096].includes(bits) ? `PKIX_RSA_PKCS1V15_${bits}_SHA256` : null
}

/** `{<id>: {body, integratedTime, logID, logIndex, verification: {inclusionProof, signedEntryTimestamp}}}` */
function proofV1(json: unknown): LogProof | null {
  const [entry] = isObject(json) ? Object.values(json) : []
  if (!isObject(entry) || !isObject(entry.verification)) return null
  const { body, integratedTime, logID, logIndex } = entry
  const { inclusionProof: proof, signedEntryTimestamp: signature } = entry.verification
  if (!isObject(proof)) return null
  return proofOf({
    entry: body,
    index: proof.logIndex,
    size: proof.treeSize,
    inclusion: proof.hashes,
    note: proof.checkpoint,
    ...(signature !== undefined && { promise: { signature, integratedTime, logID, logIndex } }),
  })
}

/** JSON of a protobuf message: 64-bit numbers are strings, bytes are base64, and zero or empty members are absent. */
function proofV2(json: unknown): LogProof | null {
  const proof = isObject(json) ? json.inclusionProof : null
  if (!isObject(json) || !isObject(proof) || !isObject(proof.checkpoint)) return null
  const { logIndex = '0', treeSize, hashes = [], checkpoint } = proof
  return proofOf({
    entry: json.canonicalizedBody,
    index: Number(logIndex),
    size: Number(treeSize),
    inclusion: Array.isArray(hashes) ? hashes.map((one) => Buffer.from(String(one), 'base64').toString('hex')) : null,
    note: checkpoint.envelope,
  })
}

function proofOf(value: object): LogProof | null {
  return isLogProof(value) ? value : null
}
