import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { type JsonObject, systemClock, systemIds } from '@plat/core'
import type { Pkcs11Uri } from '@plat/keys'
import { findKey, findToken, type TokenSlot } from './objects.ts'
import type { HelperRequest } from './protocol.ts'
import { RefusedError, runTool, ToolError, type ToolOptions } from './tool.ts'

/** Longest message of Ed25519: `pkcs11-tool` passes it to the token in one part, as the mechanism requires. */
const MAX_EDDSA_BYTES = 1024
/** DigestInfo of SHA-256 (RFC 8017, section 9.2), before the digest. */
const SHA256_PREFIX = Buffer.from('3031300d060960864801650304020105000420', 'hex')
const IV_BYTES = 16
const WRAP_MECHANISM = 'AES-CBC-PAD'
/** After so many general errors the bytes are assumed to be wrapped by another key. */
const UNWRAP_ATTEMPTS = 3

/** Performs one request. Throws `RefusedError` for what fails the same way again. */
export async function perform(request: HelperRequest, env: NodeJS.ProcessEnv): Promise<JsonObject> {
  const { operation, key } = request
  const modulePath = key.modulePath ?? env.PLAT_PKCS11_MODULE
  if (!modulePath) throw new RefusedError('no PKCS#11 module: set module-path in the URI or PLAT_PKCS11_MODULE')
  const options = { modulePath, pinFile: key.pinFile, env }
  const token = await findToken(options, key)
  if (operation === 'describe') return await describe(options, token, request)
  const data = Buffer.from(request.data ?? '', 'base64')
  const place = { options, token, id: idOf(key) }
  if (operation === 'sign') return { signature: base64(await sign(place, request.algorithm ?? '', data)) }
  if (operation === 'wrap') return { data: base64(await wrap(place, data)) }
  const plain = await unwrap(place, data)
  return { data: plain === null ? null : base64(plain) }
}

interface KeyPlace {
  readonly options: ToolOptions
  readonly token: TokenSlot
  readonly id: string
}

async function describe(options: ToolOptions, token: TokenSlot, { key, purpose }: HelperRequest): Promise<JsonObject> {
  const id = await findKey(options, token, key, purpose === 'encrypt' ? 'secret' : 'private')
  const found = { serial: token.serial, id }
  if (purpose === 'encrypt') return found
  const args = ['--slot', token.slot, '--read-object', '--type', 'pubkey', '--id', id]
  const publicKey = publicKeyIn(await runTool(options, args))
  if (publicKey === null) throw new RefusedError('the token has no public key beside the private one')
  return { ...found, publicKey: publicKey.export({ format: 'pem', type: 'spki' }).toString() }
}

/** Depending on the type of the key the tool writes DER or PEM. */
function publicKeyIn(bytes: Buffer): KeyObject | null {
  for (const input of [bytes.toString('latin1'), { key: bytes, format: 'der', type: 'spki' } as const]) {
    try {
      return createPublicKey(input)
    } catch {}
  }
  return null
}

async function sign({ options, token, id }: KeyPlace, algorithm: string, data: Buffer): Promise<Buffer> {
  const digest = () => hash('sha256', data, 'buffer')
  const run = (mechanism: string, input: Buffer) =>
    runTool(options, ['--slot', token.slot, '--sign', '--mechanism', mechanism, '--id', id], input)
  if (algorithm === 'ES256') return await run('ECDSA', digest())
  if (algorithm === 'RS256') return await run('RSA-PKCS', Buffer.concat([SHA256_PREFIX, digest()]))
  if (algorithm !== 'EdDSA') throw new RefusedError(`pkcs11-tool does not sign with ${algorithm}`)
  if (data.length > MAX_EDDSA_BYTES) {
    throw new RefusedError(`pkcs11-tool signs at most ${MAX_EDDSA_BYTES} bytes with Ed25519; use P-256 or RSA`)
  }
  return await run('EDDSA', data)
}

async function wrap({ options, token, id }: KeyPlace, plain: Buffer): Promise<Buffer> {
  const iv = Buffer.from(systemIds(systemClock).random(IV_BYTES))
  const args = [
    '--slot',
    token.slot,
    '--encrypt',
    '--mechanism',
    WRAP_MECHANISM,
    '--iv',
    iv.toString('hex'),
    '--id',
    id,
  ]
  return Buffer.concat([iv, await runTool(options, args, plain)])
}

/** Returns null for bytes that the key has not wrapped: tokens report them as damaged data, or by an error that has other causes as well. */
async function unwrap({ options, token, id }: KeyPlace, wrapped: Buffer): Promise<Buffer | null> {
  const iv = wrapped.subarray(0, IV_BYTES).toString('hex')
  const args = ['--slot', token.slot, '--decrypt', '--mechanism', WRAP_MECHANISM, '--iv', iv, '--id', id]
  for (let attempt = 1; ; attempt++) {
    try {
      return await runTool(options, args, wrapped.subarray(IV_BYTES))
    } catch (error) {
      if (error instanceof RefusedError && /^CKR_(?:ENCRYPTED_DATA|DATA)_/.test(error.code)) return null
      if (!(error instanceof ToolError) || error.code !== 'CKR_GENERAL_ERROR') throw error
      if (attempt === UNWRAP_ATTEMPTS) return null
    }
  }
}

function idOf({ id }: Pkcs11Uri): string {
  if (id === null) throw new RefusedError('the request has no id of the key')
  return id
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64')
}
