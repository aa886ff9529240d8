import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { closed, listening } from '../local.ts'

/** Contained in every hostile document: no error may quote it. */
export const DOCUMENT_MARK = 'mark-of-the-document'

/** Nesting beyond what any part accepts. */
const DEPTH = 100

/**
 * Documents that lenient readers accept and strict ones refuse, by what is wrong with them. Each is `valid` with one fault; `maxBytes` is
 * the limit of the reader.
 */
export function hostileDocuments(valid: object, maxBytes: number): ReadonlyMap<string, Uint8Array> {
  const text = JSON.stringify({ ...valid, 'x-mark': DOCUMENT_MARK })
  const [first = ''] = Object.keys(valid)
  const rest = text.slice(1)
  const member = `${JSON.stringify(first)}:${JSON.stringify(Object.values(valid)[0])}`
  const bytes = (all: string) => Buffer.from(all)
  return new Map([
    ['invalid UTF-8', Buffer.concat([bytes('{"x":"'), Buffer.from([0xff, 0xfe]), bytes(`",${rest}`)])],
    ['a byte order mark', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes(text)])],
    ['a member twice', bytes(`{${member},${rest}`)],
    ['data after the value', bytes(`${text}{}`)],
    ['nesting without end', bytes(`{"x":${'['.repeat(DEPTH)}${']'.repeat(DEPTH)},${rest}`)],
    ['an array', bytes(`[${text}]`)],
    ['a text', bytes(JSON.stringify(text))],
    ['an end too early', bytes(text.slice(0, -1))],
    ['nothing', bytes('')],
    ['too many bytes', bytes(`{"x":"${'x'.repeat(maxBytes)}",${rest}`)],
  ])
}

/** A server whose responses have status 200 and the body that was given to `next` last. */
export async function startDocumentServer(t: TestContext) {
  let body: Uint8Array = new Uint8Array(0)
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
  })
  const port = await listening(server)
  t.after(() => closed(server))
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    next(document: Uint8Array | object): void {
      body = document instanceof Uint8Array ? document : Buffer.from(JSON.stringify(document))
    },
  }
}
