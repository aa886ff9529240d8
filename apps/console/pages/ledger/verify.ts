/** A record with its proof: `GET /v1/audit/proof/{seq}`. */
export interface Proof {
  readonly seq: number
  readonly line: string
  readonly inclusion: readonly string[]
  readonly checkpoint: object
}

/** One step of the verification, in the order of the proof. */
export interface Step {
  readonly name: string
  readonly isValid: boolean
  /** The hashes of the step in hex, and where they come from. */
  readonly parts: readonly { readonly label: string; readonly value: string }[]
}

/** The line of the ledger, as docs/verify.md defines it. */
const LINE = /^\{"hash":"([0-9a-f]{64})",("prev":"([0-9a-f]{64})","rec":\{.*\},"seq":(0|[1-9]\d*),"v":1\})$/s
const ALGORITHMS: Readonly<Record<string, EcdsaParams & RsaHashedImportParams & EcKeyImportParams>> = {
  EdDSA: { name: 'Ed25519', hash: 'SHA-256', namedCurve: '' },
  ES256: { name: 'ECDSA', hash: 'SHA-256', namedCurve: 'P-256' },
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', namedCurve: '' },
}

/**
 * Verifies a proof by WebCrypto, without trusting the gateway for more than its keys: the hash of the line, the path from the line to the root of the
 * tree, and the signature of the checkpoint over that root.
 */
export async function verifyProof(proof: Proof, keys: readonly JsonWebKey[]): Promise<readonly Step[]> {
  const [, hash = '', body = '', prev = '', seq = ''] = LINE.exec(proof.line) ?? []
  const computed = await sha256(bytesOf(`plat-ledger-v1\n${body}`))
  const chain: Step = {
    name: 'The line has the hash that it states, after the line before it',
    isValid: hash !== '' && computed === hash && Number(seq) === proof.seq,
    parts: [
      { label: 'hash of the line before', value: prev },
      { label: 'computed hash of this line', value: computed },
    ],
  }
  const signed = await readCheckpoint(proof.checkpoint, keys)
  const tree = await climb(proof, signed.size)
  const isIncluded = tree.isWhole && tree.root === signed.root && proof.seq < signed.size
  return [
    chain,
    {
      name: `The path of ${proof.inclusion.length} hashes leads to the root of the checkpoint`,
      isValid: isIncluded,
      parts: tree.parts,
    },
    {
      name: `The checkpoint over ${signed.size} records is signed`,
      isValid: signed.isValid,
      parts: [
        { label: 'signed root', value: signed.root },
        { label: `key (${signed.alg})`, value: signed.kid },
        { label: 'ledger', value: signed.ledgerId },
      ],
    },
  ]
}

interface Climbed {
  readonly root: string
  readonly isWhole: boolean
  readonly parts: Step['parts']
}

/** Combines the leaf with the hashes of the path: RFC 6962, section 2.1.1. */
async function climb({ line, seq, inclusion }: Proof, size: number): Promise<Climbed> {
  let node = await digest(joined(Uint8Array.of(0), bytesOf(line)))
  const parts = [{ label: 'leaf', value: hex(node) }]
  let [at, last] = [seq, size - 1]
  for (const text of inclusion) {
    const other = fromHex(text)
    const isRight = at % 2 === 1 || at === last
    node = await digest(isRight ? joined(Uint8Array.of(1), other, node) : joined(Uint8Array.of(1), node, other))
    parts.push({ label: isRight ? 'with the left neighbour' : 'with the right neighbour', value: text })
    while (isRight && at % 2 === 0 && at > 0) [at, last] = [at / 2, Math.floor(last / 2)]
    ;[at, last] = [Math.floor(at / 2), Math.floor(last / 2)]
  }
  parts.push({ label: 'computed root', value: hex(node) })
  return { root: hex(node), isWhole: last === 0, parts }
}

interface SignedTree {
  readonly isValid: boolean
  readonly root: string
  readonly size: number
  readonly ledgerId: string
  readonly kid: string
  readonly alg: string
}

/** The claims of the checkpoint's signature, which alone count: other members of the checkpoint are not signed. */
async function readCheckpoint(checkpoint: object, keys: readonly JsonWebKey[]): Promise<SignedTree> {
  const jws: unknown = Reflect.get(checkpoint, 'jws')
  const [header = '', payload = '', signature = ''] = typeof jws === 'string' ? jws.split('.') : []
  const head = parsedPart(header)
  const { root, size, ledgerId } = parsedPart(payload)
  const [kid, alg] = [String(head.kid ?? ''), String(head.alg ?? '')]
  const key = keys.find((one) => Reflect.get(one, 'kid') === kid)
  const isValid =
    head.typ === 'plat-checkpoint+jws' &&
    key !== undefined &&
    (await isSigned({ alg, key, text: `${header}.${payload}`, signature }))
  return {
    isValid,
    kid,
    alg,
    root: String(root ?? ''),
    size: Number.isSafeInteger(size) ? Number(size) : 0,
    ledgerId: String(ledgerId ?? ''),
  }
}

interface Signed {
  readonly alg: string
  readonly key: JsonWebKey
  readonly text: string
  readonly signature: string
}

async function isSigned({ alg, key, text, signature }: Signed): Promise<boolean> {
  const algorithm = ALGORITHMS[alg]
  if (algorithm === undefined) return false
  const { kty = '', n, e, crv, x, y } = key
  const bare = Object.fromEntries(Object.entries({ kty, n, e, crv, x, y }).filter(([, value]) => value !== undefined))
  try {
    const imported = await crypto.subtle.importKey('jwk', bare, algorithm, false, ['verify'])
    return await crypto.subtle.verify(algorithm, imported, fromBase64(signature), bytesOf(text))
  } catch {
    return false
  }
}

function parsedPart(part: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(fromBase64(part)))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

async function digest(data: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', data))
}

async function sha256(data: Uint8Array<ArrayBuffer>): Promise<string> {
  return hex(await digest(data))
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function hex(data: Uint8Array): string {
  return [...data].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))
}
