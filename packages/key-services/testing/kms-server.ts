import { createCipheriv, createDecipheriv, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { isObject, type JsonObject } from '@plat/core'
import { signAws } from '@plat/http'
import { der } from '@plat/keys'
import { closed, listening } from '@plat/testkit/local'
import { signDigest } from './digest.ts'

export const CREDENTIALS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'of-the-test', sessionToken: null }
const REGION = 'eu-central-1'

/** Behaviour of a server in place of its response. */
export type Fault =
  | { readonly status: number; readonly code: string }
  | 'hang'
  | 'cut'
  | ((response: JsonObject) => JsonObject)

interface KmsKey {
  readonly spec: string
  readonly pair: { readonly publicKey: KeyObject; readonly privateKey: KeyObject } | null
  readonly secret: Buffer
  state: string
}

const ALGORITHMS: Readonly<Record<string, string>> = {
  ECC_NIST_P256: 'ECDSA_SHA_256',
  RSA_2048: 'RSASSA_PKCS1_V1_5_SHA_256',
  ECC_NIST_EDWARDS25519: 'ED25519_SHA_512',
  ML_DSA_65: 'ML_DSA_SHAKE_256',
}

/** The part of AWS KMS that plat uses, as its API reference documents it, with checked request signatures and faults on request. */
export class KmsServer {
  readonly requests: string[] = []
  /** Next faults, in order. */
  readonly faults: Fault[] = []
  readonly keys = new Map<string, KmsKey>()
  readonly aliases = new Map<string, string>()
  url = ''
  readonly #hung: Socket[] = []
  #always: Fault | null = null

  hang(socket: Socket): void {
    this.#hung.push(socket)
  }

  /** From now on each request meets this fault. */
  fail(fault: Fault): void {
    this.#always = fault
  }

  /** Serves requests again. */
  recover(): void {
    this.#always = null
    this.faults.length = 0
    this.release()
  }

  /** The fault of a request, or null. */
  next(): Fault | null {
    return this.#always ?? this.faults.shift() ?? null
  }

  /** Cuts the connections that hang. */
  release(): void {
    for (const socket of this.#hung.splice(0)) socket.destroy()
  }

  add(spec: string): string {
    const id = `${randomBytes(4).toString('hex')}-0000-4000-8000-${randomBytes(6).toString('hex')}`
    this.keys.set(id, { spec, pair: pairOf(spec), secret: randomBytes(32), state: 'Enabled' })
    return id
  }

  uri(key: string): string {
    return `kms://aws/${REGION}/${key}`
  }

  /** The response, or the code of an error. */
  answer(action: string, members: JsonObject): JsonObject | string {
    const named = String(members.KeyId).replace(/^arn:.*:(?:key\/)?/, '')
    const id = this.aliases.get(named) ?? named
    const key = this.keys.get(id)
    if (key === undefined) return 'NotFoundException'
    if (key.state !== 'Enabled') return 'DisabledException'
    const KeyId = `arn:aws:kms:${REGION}:000000000000:key/${id}`
    if (action === 'DescribeKey') return { KeyMetadata: described(KeyId, key) }
    if (key.pair === null) return symmetric(action, key.secret, members, KeyId)
    const { publicKey, privateKey } = key.pair
    if (action === 'GetPublicKey') {
      const der = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
      return { KeyId, PublicKey: der, KeySpec: key.spec, SigningAlgorithms: [ALGORITHMS[key.spec]] }
    }
    if (action !== 'Sign' || members.SigningAlgorithm !== ALGORITHMS[key.spec]) return 'InvalidKeyUsageException'
    const message = Buffer.from(String(members.Message), 'base64')
    return { KeyId, Signature: signed(key.spec, message, privateKey).toString('base64') }
  }
}

function pairOf(spec: string) {
  if (spec === 'ECC_NIST_P256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  if (spec === 'ECC_NIST_P384') return generateKeyPairSync('ec', { namedCurve: 'P-384' })
  if (spec === 'RSA_2048') return generateKeyPairSync('rsa', { modulusLength: 2048 })
  if (spec === 'ML_DSA_65') return generateKeyPairSync('ml-dsa-65')
  return spec === 'ECC_NIST_EDWARDS25519' ? generateKeyPairSync('ed25519') : null
}

function described(Arn: string, { spec, state, pair }: KmsKey): JsonObject {
  return { Arn, KeySpec: spec, KeyUsage: pair === null ? 'ENCRYPT_DECRYPT' : 'SIGN_VERIFY', KeyState: state }
}

/** ECDSA in DER, as KMS returns it. */
function signed(spec: string, message: Buffer, key: KeyObject): Buffer {
  if (spec === 'ECC_NIST_EDWARDS25519' || spec.startsWith('ML_DSA')) return sign(null, message, key)
  const signature = signDigest(message, key)
  return spec === 'ECC_NIST_P256'
    ? der(0x30, integer(signature.subarray(0, 32)), integer(signature.subarray(32)))
    : signature
}

function integer(bytes: Buffer): Buffer {
  const digits = bytes.subarray(bytes.findIndex((byte) => byte !== 0))
  return der(0x02, (digits[0] ?? 0) > 127 ? Buffer.from([0]) : Buffer.alloc(0), digits)
}

function symmetric(action: string, secret: Buffer, members: JsonObject, KeyId: string): JsonObject | string {
  const context = Buffer.from(JSON.stringify(members.EncryptionContext ?? {}))
  if (action === 'Encrypt') {
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', secret, iv).setAAD(context)
    const plain = Buffer.from(String(members.Plaintext), 'base64')
    const blob = Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
    return { KeyId, CiphertextBlob: blob.toString('base64') }
  }
  if (action !== 'Decrypt') return 'UnsupportedOperationException'
  const blob = Buffer.from(String(members.CiphertextBlob), 'base64')
  try {
    const decipher = createDecipheriv('aes-256-gcm', secret, blob.subarray(0, 12)).setAAD(context)
    decipher.setAuthTag(blob.subarray(-16))
    const plain = Buffer.concat([decipher.update(blob.subarray(12, -16)), decipher.final()])
    return { KeyId, Plaintext: plain.toString('base64') }
  } catch {
    return 'InvalidCiphertextException'
  }
}

export async function startKms(t: TestContext): Promise<KmsServer> {
  const kms = new KmsServer()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    const action = String(request.headers['x-amz-target']).replace('TrentService.', '')
    kms.requests.push(action)
    const fault = kms.next()
    if (fault === 'hang') return kms.hang(request.socket)
    if (fault === 'cut') return void request.socket.destroy()
    const fail = (status: number, code: string) =>
      void response.writeHead(status).end(JSON.stringify({ __type: `com.amazonaws.kms#${code}`, message: body }))
    if (fault !== null && typeof fault !== 'function') return fail(fault.status, fault.code)
    if (!isSigned(kms.url, request, body)) return fail(400, 'InvalidSignatureException')
    const parsed: unknown = JSON.parse(body)
    const answer = kms.answer(action, isObject(parsed) ? parsed : {})
    if (typeof answer === 'string') return fail(400, answer)
    response.end(JSON.stringify(fault === null ? answer : fault(answer)))
  })
  kms.url = `http://127.0.0.1:${await listening(server)}`
  t.after(() => {
    server.closeAllConnections()
    return closed(server)
  })
  return kms
}

function isSigned(origin: string, { headers }: IncomingMessage, body: string): boolean {
  const time = String(headers['x-amz-date']).replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5')
  const sent = Object.fromEntries(['content-type', 'x-amz-target'].map((name) => [name, String(headers[name])]))
  const url = new URL(origin)
  const request = { method: 'POST', url, headers: sent, body, region: REGION, service: 'kms', at: Date.parse(time) }
  return signAws(request, CREDENTIALS).authorization === headers.authorization
}
