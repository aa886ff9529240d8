import { hash } from 'node:crypto'
import { readJson, withoutTrailing } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import type { PublicKey } from '@plat/keys'
import { isLogProof, type LogProof } from '@plat/ledger'
import { jurisdictionOf } from '@plat/resources/regions'
import { isObject } from '@plat/tokens'

/** Largest answer of a log that is read, in bytes: an entry with its proof takes a few thousand. */
const MAX_ANSWER_BYTES = 128 * 1024
/** The id of an entry of Rekor v1: the hash of its leaf, perhaps after the number of its tree. */
const ENTRY_ID = /\/([0-9a-f]{64}|[0-9a-f]{80})$/

/** A signed text that a log takes: it keeps the text's hash, the signature and the key. */
export interface Statement {
  readonly text: string
  /** As X.509 writes signatures. */
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

/** The log did not take an entry, or what it answered is no proof of it: one line. */
export class TransparencyLogError extends Error {}

/** A Rekor log. */
export class Rekor {
  readonly #parts: RekorParts
  readonly #entries: string

  constructor(parts: RekorParts) {
    const { url, api } = parts.config
    this.#parts = parts
    this.#entries = `${withoutTrailing(url, '/')}/api/${api}/log/entries`
  }

  /** Puts the statement into the log; answers the proof, of which nothing is checked but its form. Rejects with `TransparencyLogError`. */
  async enter(statement: Statement): Promise<LogProof> {
    const isV1 = this.#parts.config.api === 'v1'
    const { status, json, location } = await this.#ask(JSON.stringify(isV1 ? entryV1(statement) : entryV2(statement)))
    if (status === 409 && isV1) return await this.#held(location)
    if (status !== 200 && status !== 201) throw new TransparencyLogError(`the log answered ${status}`)
    const proof = isV1 ? proofV1(json) : proofV2(json)
    if (proof === null) throw new TransparencyLogError('the log answered no inclusion proof')
    return proof
  }

  /** The log holds the entry already: a crash came between its answer and the record. */
  async #held(location: string): Promise<LogProof> {
    const id = ENTRY_ID.exec(location)?.[1]
    if (id === undefined) throw new TransparencyLogError('the log holds the entry and does not say where')
    const { status, json } = await this.#ask(null, `/${id}`)
    const proof = status === 200 ? proofV1(json) : null
    if (proof === null) throw new TransparencyLogError(`the log holds the entry and answered ${status} without a proof`)
    return proof
  }

  async #ask(body: string | null, path = ''): Promise<{ status: number; json: unknown; location: string }> {
    const { config, dialer } = this.#parts
    try {
      const { status, headers, bytes } = await dialer.fetchBytes(this.#entries + path, 'sink', {
        ...(body !== null && { method: 'POST', body }),
        headers: { accept: 'application/json', ...(body !== null && { 'content-type': 'application/json' }) },
        maxBytes: MAX_ANSWER_BYTES,
        timeoutMs: config.timeoutSeconds * 1000,
        jurisdiction: jurisdictionOf({ upstream: config.url, jurisdiction: config.jurisdiction }, null) ?? '',
      })
      return { status, json: readJson(bytes), location: headers.location ?? '' }
    } catch (error) {
      throw new TransparencyLogError(`the log cannot be asked: ${dialFault(error)}`)
    }
  }
}

/** Ed25519 needs the type of entry that holds the text itself until it is checked: the other one takes Ed25519ph alone. */
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
  if (keyDetails === null) throw new TransparencyLogError('a log of api v2 takes no key of this kind')
  const rawBytes = key.key.export({ format: 'der', type: 'spki' }).toString('base64')
  return {
    hashedRekordRequestV002: {
      digest: hash('sha256', text, 'base64'),
      signature: { content: signature.toString('base64'), verifier: { publicKey: { rawBytes }, keyDetails } },
    },
  }
}

/** How Rekor v2 calls keys of this kind; null: it takes none. */
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

/** JSON of a protobuf message: 64-bit numbers are strings, bytes are base64, and what is 0 or empty is absent. */
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
