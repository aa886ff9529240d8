import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { TestContext } from 'node:test'
import { listening } from '@plat/testkit/local'

/** How the server behaves: `corrupt` stores a changed byte, `refuse` responds to uploads with 403, `late error` fails the last step of an upload with 200. */
export type S3Behavior = 'well' | 'corrupt' | 'refuse' | 'late error' | 'dead'

export interface S3Server {
  readonly url: string
  readonly objects: Map<string, Buffer>
  /** Uploads that were begun and neither completed nor aborted. */
  readonly uploads: ReadonlyMap<string, unknown>
  readonly requests: string[]
  behaves: S3Behavior
}

/** An S3 server with uploads of several parts and ranges, which verifies each signature and the hash of each body. */
export async function startS3(t: TestContext, secret: string): Promise<S3Server> {
  const objects = new Map<string, Buffer>()
  const uploads = new Map<string, Map<number, Buffer>>()
  const state: Pick<S3Server, 'requests'> & { behaves: S3Behavior } = { behaves: 'well', requests: [] }
  const answer = (request: IncomingMessage, body: Buffer): Answer => {
    const url = new URL(request.url ?? '', 'http://s3')
    const key = url.pathname
    const { searchParams } = url
    const uploadId = searchParams.get('uploadId')
    state.requests.push(`${request.method} ${request.url?.slice(0, 200)}`)
    assertSignedForS3(request, url, { body, secret })
    if (state.behaves === 'refuse' && request.method !== 'GET')
      return { status: 403, text: '<Error><Code>AccessDenied</Code></Error>' }
    const stored = state.behaves === 'corrupt' ? changed(body) : body
    if (request.method === 'GET') return rangeOf(objects.get(key), request.headers.range)
    if (request.method === 'DELETE') return { status: uploads.delete(uploadId ?? '') ? 204 : 404 }
    if (request.method === 'POST' && searchParams.has('uploads')) {
      const id = `upload-${uploads.size}`
      uploads.set(id, new Map())
      return {
        status: 200,
        text: `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
      }
    }
    if (uploadId === null) {
      objects.set(key, stored)
      return { status: 200 }
    }
    const parts = uploads.get(uploadId)
    if (parts === undefined) return { status: 404, text: '<Error><Code>NoSuchUpload</Code></Error>' }
    if (request.method === 'PUT') {
      parts.set(Number(searchParams.get('partNumber')), stored)
      return { status: 200, etag: `"${createHash('md5').update(stored).digest('hex')}"` }
    }
    if (state.behaves === 'late error') return { status: 200, text: '<Error><Code>InternalError</Code></Error>' }
    assert.equal(body.toString().match(/<Part>/g)?.length, parts.size, 'all parts are listed')
    objects.set(key, Buffer.concat([...parts].sort(([a], [b]) => a - b).map(([, part]) => part)))
    uploads.delete(uploadId)
    return { status: 200, text: '<CompleteMultipartUploadResult/>' }
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (state.behaves === 'dead') return void request.socket.destroy()
    const { status, text = '', bytes = Buffer.from(text), etag } = answer(request, Buffer.concat(chunks))
    response.writeHead(status, etag === undefined ? {} : { etag }).end(bytes)
  })
  const port = await listening(server)
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return Object.assign(state, { url: `http://127.0.0.1:${port}/bucket/plat`, objects, uploads })
}

interface Answer {
  readonly status: number
  readonly text?: string
  readonly bytes?: Buffer
  readonly etag?: string
}

function changed(body: Buffer): Buffer {
  const copy = Buffer.from(body)
  copy[0] = (copy[0] ?? 0) ^ 1
  return copy
}

function rangeOf(object: Buffer | undefined, range: string | undefined): Answer {
  if (object === undefined) return { status: 404, text: '<Error><Code>NoSuchKey</Code></Error>' }
  const [, from = '', to = ''] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? []
  return range === undefined
    ? { status: 200, bytes: object }
    : { status: 206, bytes: object.subarray(Number(from), Number(to) + 1) }
}

/** Signature Version 4 as S3 computes it: the path is not encoded again. */
function assertSignedForS3(
  { method, headers }: IncomingMessage,
  url: URL,
  { body, secret }: { readonly body: Buffer; readonly secret: string },
): void {
  const found = /^AWS4-HMAC-SHA256 Credential=[^/]+\/(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})$/.exec(
    headers.authorization ?? '',
  )
  assert.ok(found !== null, 'the request is signed')
  const [, scope = '', names = '', signature] = found
  const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')
  assert.equal(headers['x-amz-content-sha256'], sha256(body))
  assert.ok(names.split(';').includes('x-amz-content-sha256'))
  const lines = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`)
  const query = [...url.searchParams]
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .sort()
    .join('&')
  const canonical = `${method}\n${url.pathname}\n${query}\n${lines.join('')}\n${names}\n${sha256(body)}`
  const toSign = `AWS4-HMAC-SHA256\n${headers['x-amz-date']}\n${scope}\n${sha256(canonical)}`
  let key: Buffer | string = `AWS4${secret}`
  for (const part of scope.split('/')) key = createHmac('sha256', key).update(part).digest()
  assert.equal(createHmac('sha256', key).update(toSign).digest('hex'), signature)
}
