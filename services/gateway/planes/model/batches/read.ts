import { createHash } from 'node:crypto'
import { type Denial, deny, isDenial, modelScopeOf, type Parsed } from '../../../call/index.ts'
import { useJsonBytes } from '../../wire/message.ts'
import { batches, messageBatches } from '../dialects/batches.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { type CallersModels, only } from '../directory/address.ts'
import { type ModelBody, readModelBody } from '../request.ts'
import { UploadBody } from '../uploads/body.ts'
import type { UploadedFile } from '../uploads/read.ts'
import { scopeFault, type UnreadRequest } from '../uploads/request.ts'
import type { SpoolFile } from '../uploads/spool.ts'
import { BatchBody } from './body.ts'
import type { BatchJudge } from './judge.ts'
import { messageBatchFault, requestsOfBody, requestsOfFile } from './requests.ts'

/** `batches`, `batches/<id>`, `batches/<id>/cancel`; below `messages/` also `<id>/results`. An id becomes a part of a path at the provider. */
const PATH = /^(messages\/)?batches(?:\/([A-Za-z0-9][A-Za-z0-9_-]{0,127})(?:\/(cancel|results))?)?$/

/** Returns true for an endpoint for batches. */
export function isBatchEndpoint(endpoint: string): boolean {
  return /^(?:messages\/)?batches(?:\/|$)/.test(endpoint)
}

/** Dependencies of requests for batches. */
export interface BatchReader {
  readonly judge: BatchJudge
  /** Reads a file of the caller at the provider, as a separate governed call. */
  fetchFile(unread: UnreadRequest, route: string, id: string): Promise<FetchedFile | Denial>
}

/** A file that was read from its provider. */
export interface FetchedFile {
  readonly account: string
  read(): AsyncIterable<Uint8Array>
}

interface Endpoint {
  readonly endpoint: string
  /** Null at the address of all routes, where the token must have batches of one route. */
  readonly route: string | null
}

/** Reads a request for batches. */
export function readBatches(
  unread: UnreadRequest,
  { endpoint, route }: Endpoint,
  { models, reader }: { readonly models: (scope: string) => CallersModels; readonly reader: BatchReader },
): Parsed | Denial | Promise<Parsed | Denial> {
  const { method } = unread.arrival.wire
  const [path, anthropic, id = null, verb] = PATH.exec(endpoint) ?? []
  if (path === undefined || (verb === 'results' && anthropic === undefined)) return deny('not_found', 'no such batch')
  const dialect = anthropic === undefined ? batches : messageBatches
  const refused = scopeFault(unread.identity, dialect, route)
  if (refused !== null) return refused
  const found = route === null ? models(modelScopeOf(dialect.operation)).find(null) : { route }
  if (isDenial(found)) return found
  const base = { operation: dialect.operation, server: found.route, name: id, body: null, parent: null } as const
  const named = (name: string): Parsed => ({ ...base, method: `${dialect.method}/${name}` })
  if (verb === 'cancel') return method === 'POST' ? named('cancel') : only('POST', method)
  if (verb === 'results') return method === 'GET' ? named('results') : only('GET', method)
  if (method === 'GET') return named(id === null ? 'list' : 'get')
  if (id !== null && method === 'DELETE' && anthropic !== undefined) return named('delete')
  if (id !== null) return only(anthropic === undefined ? 'GET' : 'GET, DELETE', method)
  if (method !== 'POST') return only('GET, POST', method)
  return created(unread, { dialect, server: found.route, reader }).then((body) =>
    isDenial(body) ? body : { ...base, method: dialect.method, body },
  )
}

interface Creating {
  readonly dialect: Dialect
  readonly server: string
  readonly reader: BatchReader
}

/** Reads the request that creates a batch, and judges the requests in it. */
async function created(unread: UnreadRequest, creating: Creating): Promise<BatchBody | Denial> {
  const bytes = await useJsonBytes(unread.arrival, unread.limits, (read) => read)
  if (isDenial(bytes)) return bytes
  return creating.dialect === messageBatches ? ofMessages(unread, creating, bytes) : ofFile(unread, creating, bytes)
}

async function ofMessages(unread: UnreadRequest, creating: Creating, bytes: Uint8Array): Promise<BatchBody | Denial> {
  const fault = messageBatchFault(bytes)
  if (fault !== null) return fault
  const { arrival, identity } = unread
  const { dialect, server, reader } = creating
  const pieces: Uint8Array[] = []
  const batch = await reader.judge.judge({
    ...{ arrival, identity, server, method: dialect.method, account: null, requests: requestsOfBody(bytes) },
    judged(request) {
      if (!arrival.retain(request.length)) return deny('overloaded', 'calls hold too many bytes in memory; call again')
      pieces.push(Buffer.from(pieces.length === 0 ? '{"requests":[' : ','), request)
      return null
    },
  })
  if (isDenial(batch)) return batch
  const body = bodyOf(Buffer.from('{}'), dialect)
  return isDenial(body) ? body : new BatchBody(body, batch, Buffer.concat([...pieces, Buffer.from(']}')]))
}

async function ofFile(unread: UnreadRequest, creating: Creating, bytes: Uint8Array): Promise<BatchBody | Denial> {
  const { dialect, server, reader } = creating
  const body = bodyOf(bytes, dialect)
  if (isDenial(body)) return body
  const file = await reader.fetchFile(unread, server, String(body.value.input_file_id))
  if (isDenial(file)) return file
  const { arrival, identity, limits } = unread
  const batch = await reader.judge.judge({
    ...{ arrival, identity, server, method: dialect.method, account: file.account },
    requests: requestsOfFile(file.read(), { endpoint: String(body.value.endpoint), maxBytes: limits.maxBodyBytes }),
    judged: (_, isChanged) => (isChanged ? deny('conflict', CHANGED) : null),
  })
  return isDenial(batch) ? batch : new BatchBody(body, batch, null)
}

/** The provider executes the file as it is stored. */
const CHANGED = 'redaction, a budget or the route would change it now: upload the file again'

function bodyOf(bytes: Uint8Array, dialect: Dialect): ModelBody | Denial {
  return readModelBody(bytes, dialect)
}

/** Judges the requests in a file that is uploaded for batches. What redaction, budgets and the route change is changed in the file. */
export async function judgedUpload(
  { arrival, identity, limits }: UnreadRequest,
  parsed: Parsed,
  reader: BatchReader,
): Promise<Parsed | Denial> {
  const { body, server } = parsed
  if (!(body instanceof UploadBody) || body.value.purpose !== 'batch') return parsed
  const [file] = body.files
  if (file === undefined) return deny('invalid_request', 'a file is required', { data: { param: 'file' } })
  const spooled = await limits.spool.open(identity)
  if (spooled === null) return noRoom()
  arrival.whenOver?.(() => spooled.close())
  let isChanged = false
  const batch = await reader.judge.judge({
    ...{ arrival, identity, server, method: batches.method, account: null },
    requests: requestsOfFile(file.read(), { endpoint: null, maxBytes: limits.maxBodyBytes }),
    async judged(line, isOther) {
      isChanged ||= isOther
      return (await spooled.append(Buffer.concat([line, NEWLINE]))) ? null : noRoom()
    },
  })
  if (isDenial(batch)) return batch
  await spooled.flush()
  const next = isChanged ? { ...file, ...(await replaced(spooled)) } : file
  return { ...parsed, body: body.withBatch(next, batch) }
}

const NEWLINE = Buffer.from('\n')

async function replaced(spooled: SpoolFile): Promise<Pick<UploadedFile, 'size' | 'sha256' | 'head' | 'read'>> {
  const { size } = spooled
  const read = () => spooled.read(0, size)
  const head = await first(spooled.read(0, Math.min(size, HEAD_BYTES)))
  return { size, head, read, sha256: await digestOf(read()) }
}

/** Bytes of a file that say what it is. */
const HEAD_BYTES = 4096

async function first(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  for await (const chunk of chunks) return chunk
  return new Uint8Array(0)
}

async function digestOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

function noRoom(): Denial {
  return deny('overloaded', 'uploads of this session or agent, or all uploads, hold too many bytes; call again')
}
