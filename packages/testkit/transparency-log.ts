import { createHash, createPublicKey, generateKeyPairSync, hash, type KeyObject, sign, verify } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { canonicalJson } from '@plat/core'
import { listening, tempFolder } from './local.ts'

/** A small Rekor for both protocols, which verifies entries as the real one does and returns proofs. */
export interface TestLog {
  readonly url: string
  /** File with its public key. */
  readonly keyFile: string
  /** Stored entries as canonical JSON. */
  readonly entries: readonly string[]
  /** Changes responses; `null` becomes a 503. */
  mangle: (answer: Record<string, unknown>) => Record<string, unknown> | null
}

const ORIGIN = 'log.example'

/** Starts a log with a P-256 key, as the public Rekor has. */
export async function startLog(t: TestContext): Promise<TestLog> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keyFile = join(tempFolder(), 'log.pem')
  await writeFile(keyFile, publicKey.export({ format: 'pem', type: 'spki' }))
  const entries: string[] = ['a', 'b', 'c']
  const server = createServer((request, response) => {
    void answer(request, response, { entries, privateKey, publicKey, mangle: (proof) => log.mangle(proof) })
  })
  const port = await listening(server)
  t.after(() => server.close())
  const log: TestLog = { url: `http://127.0.0.1:${port}`, keyFile, entries, mangle: (proof) => proof }
  return log
}

interface State {
  readonly entries: string[]
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  readonly mangle: TestLog['mangle']
}

async function answer(request: IncomingMessage, response: ServerResponse, state: State): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const isV1 = request.url?.startsWith('/api/v1/') === true
  const send = (status: number, body: unknown, headers = {}) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(body))
  }
  const held = state.entries.find((entry) => request.url?.endsWith(`/${leaf(entry).toString('hex')}`))
  if (request.method === 'GET') {
    return held === undefined ? send(404, {}) : send(200, proven(state, state.entries.indexOf(held), true))
  }
  const given = JSON.parse(Buffer.concat(chunks).toString())
  const entry = isV1 ? takenV1(given) : takenV2(given)
  if (entry === null) return send(400, { code: 400, message: 'error processing entry' })
  const id = leaf(entry).toString('hex')
  if (state.entries.includes(entry)) return send(409, {}, { location: `/api/v1/log/entries/${id}` })
  state.entries.push(entry)
  const proof = state.mangle(proven(state, state.entries.length - 1, isV1))
  return proof === null ? send(503, {}) : send(201, proof)
}

interface Proposed {
  readonly apiVersion: string
  readonly kind: string
  readonly spec: {
    readonly data: { readonly content: string }
    readonly signature: { readonly content: string; readonly format?: string; readonly publicKey: { content: string } }
  }
}

interface ProposedV2 {
  readonly hashedRekordRequestV002: {
    readonly digest: string
    readonly signature: { readonly verifier: { readonly keyDetails: string } }
  }
}

/** Returns the entry that Rekor v1 stores, or null if it refuses. */
function takenV1({ apiVersion, kind, spec }: Proposed): string | null {
  const { content, publicKey, format } = spec.signature
  const key = createPublicKey(Buffer.from(publicKey.content, 'base64'))
  const bytes = Buffer.from(content, 'base64')
  if (kind === 'rekord') {
    const data = Buffer.from(spec.data.content, 'base64')
    if (format !== 'x509' || !verify(null, data, key, bytes)) return null
    const digest = { algorithm: 'sha256', value: hash('sha256', data, 'hex') }
    return canonicalJson({
      apiVersion,
      kind,
      spec: { data: { hash: digest }, signature: { content, format, publicKey } },
    })
  }
  // The signature is over the digest: pure Ed25519 cannot be verified by it.
  if (kind !== 'hashedrekord' || key.asymmetricKeyType === 'ed25519') return null
  return canonicalJson({
    apiVersion,
    kind,
    spec: { data: spec.data, signature: { content, publicKey } },
  })
}

function takenV2({ hashedRekordRequestV002: { digest, signature } }: ProposedV2): string | null {
  if (!/^PKIX_(ECDSA_P256_SHA_256|RSA_PKCS1V15_\d+_SHA256)$/.test(signature.verifier.keyDetails)) return null
  return canonicalJson({
    apiVersion: '0.0.2',
    kind: 'hashedrekord',
    spec: { hashedRekordV002: { data: { algorithm: 'SHA2_256', digest }, signature } },
  })
}

function proven({ entries, privateKey, publicKey }: State, index: number, isV1: boolean): Record<string, unknown> {
  const entry = entries[index] ?? ''
  const leaves = entries.map(leaf)
  const [root, path] = [rootOf(leaves), pathOf(leaves, index)]
  const der = publicKey.export({ format: 'der', type: 'spki' })
  const origin = isV1 ? `${ORIGIN} - 1234567890` : ORIGIN
  const text = `${origin}\n${leaves.length}\n${root.toString('base64')}\n`
  const signature = Buffer.concat([
    hash('sha256', der, 'buffer').subarray(0, 4),
    sign('sha256', Buffer.from(text), privateKey),
  ])
  const note = `${text}\n— ${ORIGIN} ${signature.toString('base64')}\n`
  const body = Buffer.from(entry).toString('base64')
  if (!isV1) {
    const hashes = path.map((one) => one.toString('base64'))
    const proof = { logIndex: String(index), treeSize: String(leaves.length), hashes, checkpoint: { envelope: note } }
    return { logIndex: String(index), canonicalizedBody: body, inclusionProof: proof }
  }
  const promised = { body, integratedTime: 1_790_000_000, logID: hash('sha256', der, 'hex'), logIndex: index + 1000 }
  const inclusionProof = {
    logIndex: index,
    treeSize: leaves.length,
    rootHash: root.toString('hex'),
    hashes: path.map((one) => one.toString('hex')),
    checkpoint: note,
  }
  const signedEntryTimestamp = sign('sha256', Buffer.from(canonicalJson(promised)), privateKey).toString('base64')
  return { [leaf(entry).toString('hex')]: { ...promised, verification: { inclusionProof, signedEntryTimestamp } } }
}

const sha = (...parts: readonly Uint8Array[]): Buffer => {
  const made = createHash('sha256')
  for (const part of parts) made.update(part)
  return made.digest()
}
const leaf = (entry: string) => sha(Buffer.of(0), Buffer.from(entry))

/** RFC 6962, sections 2.1 and 2.1.1, implemented literally. */
function rootOf(leaves: readonly Buffer[]): Buffer {
  const [first = sha()] = leaves
  if (leaves.length < 2) return first
  const left = leftOf(leaves)
  return sha(Buffer.of(1), rootOf(leaves.slice(0, left)), rootOf(leaves.slice(left)))
}

function pathOf(leaves: readonly Buffer[], index: number): Buffer[] {
  if (leaves.length < 2) return []
  const left = leftOf(leaves)
  const [head, tail] = [leaves.slice(0, left), leaves.slice(left)]
  return index < left ? [...pathOf(head, index), rootOf(tail)] : [...pathOf(tail, index - left), rootOf(head)]
}

function leftOf(leaves: readonly Buffer[]): number {
  let left = 1
  while (left * 2 < leaves.length) left *= 2
  return left
}
