import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { listening } from '@plat/testkit/local'

/** How the server behaves: `corrupt` stores a changed byte, `refuse` responds to uploads with 403, `late error` fails the last step of an upload with 200. */
export type S3Behavior = 'well' | 'corrupt' | 'refuse' | 'late error' | 'dead'

/**
 * Faults of one request. `reset`: the connection ends before the body was read; `no response`: after the request was carried out. `truncated`: the response
 * ends before its length; `short` and `long`: it is whole, with a byte less or more than requested. `wrong tag`: its ETag is not one.
 */
export const S3_FAULTS = [
  ...(['refused', 'reset', 'no response', 'status 503', 'status 403'] as const),
  ...(['wrong tag', 'changed', 'truncated', 'short', 'long', 'stall'] as const),
] as const
export type S3Fault = (typeof S3_FAULTS)[number]

export interface S3Server {
  readonly url: string
  readonly objects: Map<string, Buffer>
  /** Uploads that were begun and neither completed nor aborted. */
  readonly uploads: Pick<Map<string, unknown>, 'size' | 'clear'>
  readonly requests: string[]
  behaves: S3Behavior
  /** Fault of the request with this index in `requests`, or of all with this method. */
  fault: { readonly at: number | 'PUT' | 'GET'; readonly kind: S3Fault } | null
  /** Called with each request before it is carried out. */
  onRequest: (request: string) => Promise<void>
  /** Refuses connections, and accepts them again. */
  stop(): void
  start(): Promise<void>
}

/** An S3 server with uploads of several parts and ranges, which verifies each signature and the hash of each body. */
export async function startS3(t: TestContext, secret: string): Promise<S3Server> {
  const objects = new Map<string, Buffer>()
  const uploads = new Map<string, Map<number, Buffer>>()
  const state: Controls = { behaves: 'well', requests: [], fault: null, onRequest: async () => {} }
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
  return Object.assign(await serve(t, state, answer), { objects, uploads })
}

type Controls = Pick<S3Server, 'requests' | 'behaves' | 'fault' | 'onRequest'>

/** Serves requests, with the fault that `controls` name. */
async function serve(t: TestContext, controls: Controls, answer: (request: IncomingMessage, body: Buffer) => Answer) {
  const server = createServer(async (request, response) => {
    const { fault } = controls
    const kind = fault !== null && [controls.requests.length, request.method].includes(fault.at) ? fault.kind : null
    const chunks: Buffer[] = []
    if (kind === 'reset') {
      controls.requests.push('reset')
      return void request.socket.destroy()
    }
    for await (const chunk of request) chunks.push(chunk)
    if (controls.behaves === 'dead') return void request.socket.destroy()
    await controls.onRequest(`${request.method} ${request.url}`)
    const reply = answer(request, Buffer.concat(chunks))
    const isBefore = fault?.at === controls.requests.length || (fault?.at === 'GET' && request.method === 'PUT')
    if (fault?.kind === 'refused' && isBefore) {
      response.setHeader('connection', 'close')
      server.close()
    }
    if (kind === null) send(response, reply)
    else sendWithFault(response, reply, kind)
  })
  const port = await listening(server)
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const stop = () => void server.close()
  const start = async () => void (server.listening || (await listening(server, '127.0.0.1', port)))
  return Object.assign(controls, { stop, start, url: `http://127.0.0.1:${port}/bucket/plat` })
}

interface Answer {
  readonly status: number
  readonly text?: string
  readonly bytes?: Buffer
  readonly etag?: string
}

function send(response: ServerResponse, { status, text = '', bytes = Buffer.from(text), etag }: Answer): void {
  response.writeHead(status, etag === undefined ? {} : { etag }).end(bytes)
}

function sendWithFault(response: ServerResponse, answer: Answer, kind: S3Fault): void {
  const { text = '', bytes = Buffer.from(text), status, etag } = answer
  if (kind === 'no response') response.socket?.destroy()
  else if (kind.startsWith('status '))
    send(response, { status: Number(kind.slice('status '.length)), text: '<Error><Code>SlowDown</Code></Error>' })
  else if (kind === 'wrong tag') send(response, { ...answer, etag: '"<Part>"' })
  else if (kind === 'changed') send(response, { ...answer, bytes: changed(bytes) })
  else if (kind === 'short') send(response, { ...answer, bytes: bytes.subarray(1) })
  else if (kind === 'long') send(response, { ...answer, bytes: Buffer.concat([bytes, Buffer.from('x')]) })
  else if (kind === 'truncated') {
    response.writeHead(status, { 'content-length': bytes.length + 1, ...(etag !== undefined && { etag }) })
    response.write(bytes, () => response.socket?.destroy())
  }
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
