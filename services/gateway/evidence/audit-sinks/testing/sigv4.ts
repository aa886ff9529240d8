import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import type { Posted } from './servers.ts'

/** Verifies AWS Signature Version 4 from the request alone, as a server does. */
export function assertSigned(
  { method, path, headers, body }: Posted,
  secret: string,
): { keyId: string; scope: string } {
  const found = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})$/.exec(
    headers.authorization ?? '',
  )
  assert.ok(found !== null, 'the request is signed')
  const [, keyId = '', scope = '', names = '', signature] = found
  for (const name of ['host', 'x-amz-date', 'x-amz-target', 'content-type'])
    assert.ok(names.split(';').includes(name), name)
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
  const lines = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`)
  const canonical = `${method}\n${path}\n\n${lines.join('')}\n${names}\n${sha256(body)}`
  const toSign = `AWS4-HMAC-SHA256\n${headers['x-amz-date']}\n${scope}\n${sha256(canonical)}`
  let key: Buffer | string = `AWS4${secret}`
  for (const part of scope.split('/')) key = createHmac('sha256', key).update(part).digest()
  assert.equal(createHmac('sha256', key).update(toSign).digest('hex'), signature)
  return { keyId, scope }
}
