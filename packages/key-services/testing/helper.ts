import { createCipheriv, createDecipheriv, createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { isObject } from '@plat/core'
import { publicKeyOf } from '@plat/keys'
import type { HelperRequest } from '../pkcs11/protocol.ts'

/**
 * A helper that speaks the protocol of docs/pkcs11-helper.md with keys in its memory, without a PKCS#11 module. The object `hang` is never answered,
 * `crash` ends the process, `noise` breaks the protocol, `pin` repeats its environment in an error.
 */
const keys = {
  p256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  other: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed: generateKeyPairSync('ed25519'),
}
const secrets: Readonly<Record<string, Buffer>> = { wrap: randomBytes(32), wrap2: randomBytes(32) }

function write(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function isRequest(value: unknown): value is HelperRequest {
  return isObject(value) && isObject(value.key)
}

function resultOf({ operation, purpose, key, data = '' }: HelperRequest): object {
  const name = key.id === null ? String(key.object) : Buffer.from(key.id, 'hex').toString()
  if (name === 'crash') process.exit(1)
  if (name === 'noise') process.stdout.write('noise\n')
  if (name === 'pin') throw new Error(JSON.stringify(process.env))
  const pair = Object.entries(keys).find(([known]) => known === name)?.[1]
  const found = { serial: '1', id: Buffer.from(name).toString('hex') }
  const bytes = Buffer.from(data, 'base64')
  if (pair !== undefined && (operation === 'sign' || purpose === 'sign')) {
    if (operation === 'describe') return { ...found, publicKey: pair.publicKey.export({ format: 'pem', type: 'spki' }) }
    const signature = publicKeyOf(pair.privateKey)?.algorithm.sign(bytes, pair.privateKey)
    return { signature: Buffer.from(signature ?? []).toString('base64') }
  }
  const secret = secrets[name]
  if (secret === undefined || purpose === 'sign') throw new Error('no such key')
  if (operation === 'describe') return found
  const iv = createHash('sha256').update(name).digest().subarray(0, 12)
  if (operation === 'wrap') {
    const cipher = createCipheriv('aes-256-gcm', secret, iv)
    const sealed = Buffer.concat([cipher.update(bytes), cipher.final()])
    return { data: Buffer.concat([sealed, cipher.getAuthTag()]).toString('base64') }
  }
  try {
    const decipher = createDecipheriv('aes-256-gcm', secret, iv, { authTagLength: 16 })
    decipher.setAuthTag(bytes.subarray(-16))
    return { data: Buffer.concat([decipher.update(bytes.subarray(0, -16)), decipher.final()]).toString('base64') }
  } catch {
    return { data: null }
  }
}

process.stdout.write('{"platKeyHelper":1}\n')
createInterface({ input: process.stdin }).on('line', (line) => {
  const request: unknown = JSON.parse(line)
  if (!isRequest(request) || request.key.object === 'hang') return
  try {
    write({ id: request.id, result: resultOf(request) })
  } catch (error) {
    write({ id: request.id, error: { kind: 'refused', message: error instanceof Error ? error.message : '' } })
  }
})
