import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { isObject, type JsonObject } from '@plat/core'
import { closed, listening } from '../local.ts'

interface StoredObject {
  readonly metadata: JsonObject & {
    readonly name: string
    readonly namespace?: string
    readonly resourceVersion: string
  }
  readonly [name: string]: unknown
}

/** `/apis/<group>/<version>` or `/api/v1`, perhaps a namespace, a plural, perhaps a name, perhaps `/status`. */
const PATH = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(\/status)?$/

/**
 * A small API server over plain HTTP for failures that a real one shows only rarely: it stores any object, lists and watches, and fails on command.
 * It has no schemas, defaults or managed fields.
 */
export class KubernetesApiServer {
  /** `<METHOD> <path>` of every request, without its query. */
  readonly seen: string[] = []
  /** Requests (`<METHOD> <path>`) that match are answered with the status and a Status object. */
  readonly faults: { readonly request: RegExp; readonly status: number; readonly reason: string }[] = []
  /** Requests that match wait for this. */
  readonly held: { readonly request: RegExp; readonly until: Promise<void> }[] = []
  /** `Authorization` of all requests. */
  readonly bearers = new Set<string | undefined>()
  /** `status` of every TokenReview; null: they are objects like all others. */
  review: JsonObject | null = null
  url = ''
  readonly #server: Server
  readonly #isTls: boolean
  readonly #objects = new Map<string, StoredObject>()
  readonly #watches = new Set<{ readonly covers: (path: string) => boolean; readonly response: ServerResponse }>()
  #version = 100
  /** Watches from an older version are gone. */
  #oldest = 0

  /** `tls`: of a certificate for `localhost`, in PEM; absent: it speaks plain HTTP. */
  constructor(tls?: { readonly cert: string; readonly key: string }) {
    const handle = (request: IncomingMessage, response: ServerResponse) => {
      this.#handle(request, response).catch(() => response.destroy())
    }
    this.#isTls = tls !== undefined
    this.#server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle)
  }

  async start(): Promise<void> {
    const port = await listening(this.#server)
    this.url = this.#isTls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`
  }

  async stop(): Promise<void> {
    await closed(this.#server)
  }

  /** Writes an object at its path, as a client would, and notifies watchers. */
  put(path: string, object: JsonObject): void {
    const before = this.#objects.get(path)
    const [, , namespace, , name = ''] = PATH.exec(path) ?? []
    const metadata = {
      uid: `uid-${this.#version}`,
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...before?.metadata,
      ...Object(object.metadata),
      name,
      ...(namespace !== undefined && { namespace }),
      resourceVersion: String(++this.#version),
    }
    if (before !== undefined && JSON.stringify(before.spec) !== JSON.stringify(object.spec)) metadata.generation++
    const stored = { ...object, metadata }
    this.#objects.set(path, stored)
    this.#broadcast(before === undefined ? 'ADDED' : 'MODIFIED', path, stored)
  }

  remove(path: string): void {
    const object = this.#objects.get(path)
    if (object === undefined) return
    this.#objects.delete(path)
    const resourceVersion = String(++this.#version)
    this.#broadcast('DELETED', path, { ...object, metadata: { ...object.metadata, resourceVersion } })
  }

  get(path: string): JsonObject | undefined {
    return this.#objects.get(path)
  }

  /** How many watches are open. */
  get watching(): number {
    return this.#watches.size
  }

  /** Breaks every watch in the middle. */
  cutWatches(): void {
    for (const { response } of this.#watches) response.destroy()
  }

  /** Drops the history: a watch from an older version gets 410. */
  forgetHistory(): void {
    this.#version++
    this.#oldest = this.#version
  }

  /** Sends a line to every watcher, such as half of one. */
  say(text: string): void {
    for (const { response } of this.#watches) response.write(text)
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'http://api')
    const requested = `${request.method} ${url.pathname}`
    let body = ''
    for await (const chunk of request) body += chunk
    this.seen.push(requested)
    this.bearers.add(request.headers.authorization)
    for (const hold of this.held) if (hold.request.test(requested)) await hold.until
    const fault = this.faults.find((each) => each.request.test(requested))
    const [, prefix, namespace, plural, name, status] = PATH.exec(url.pathname) ?? []
    if (fault !== undefined) refuse(response, fault.status, fault.reason)
    else if (prefix === undefined) refuse(response, 404, 'NotFound')
    else if (plural === 'tokenreviews' && this.review !== null) send(response, 201, { status: this.review })
    else if (name === undefined && request.method === 'GET') this.#list({ prefix, namespace, plural }, url, response)
    else if (request.method === 'GET') this.#answer(response, this.#objects.get(url.pathname))
    else if (request.method === 'DELETE') {
      this.remove(url.pathname)
      send(response, 200, {})
    } else if (request.headers['content-type'] === 'application/merge-patch+json') {
      this.#merge(url.pathname, JSON.parse(body), response)
    } else this.#write(url.pathname, status !== undefined, JSON.parse(body), response)
  }

  #answer(response: ServerResponse, object: StoredObject | undefined): void {
    if (object === undefined) refuse(response, 404, 'NotFound')
    else send(response, 200, object)
  }

  #list(
    { prefix, namespace, plural }: { prefix: string; namespace: string | undefined; plural: string | undefined },
    url: URL,
    response: ServerResponse,
  ): void {
    const covers = (path: string) => {
      const [, at, of, kind] = PATH.exec(path) ?? []
      return at === prefix && kind === plural && (namespace === undefined || of === namespace)
    }
    if (url.searchParams.get('watch') !== 'true') {
      const items = [...this.#objects].filter(([path]) => covers(path)).map(([, object]) => object)
      send(response, 200, { metadata: { resourceVersion: String(this.#version) }, items })
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    const from = Number(url.searchParams.get('resourceVersion'))
    if (from < this.#oldest) {
      response.end(`${JSON.stringify({ type: 'ERROR', object: statusOf(410, 'Expired') })}\n`)
      return
    }
    for (const [path, object] of this.#objects) {
      if (covers(path) && Number(object.metadata.resourceVersion) > from) response.write(lineOf('MODIFIED', object))
    }
    const watch = { covers, response }
    this.#watches.add(watch)
    response.on('close', () => this.#watches.delete(watch))
  }

  #write(path: string, ofStatus: boolean, body: JsonObject, response: ServerResponse): void {
    const target = ofStatus ? path.replace(/\/status$/, '') : path
    const [, , , , name] = PATH.exec(target) ?? []
    const at = name === undefined ? `${target}/${Object(body.metadata).name}` : target
    const before = this.#objects.get(at)
    const { resourceVersion } = Object(body.metadata)
    if (resourceVersion !== undefined && resourceVersion !== before?.metadata.resourceVersion) {
      refuse(response, 409, 'Conflict')
    } else if (ofStatus && before === undefined) refuse(response, 404, 'NotFound')
    else {
      const status = before?.status === undefined ? {} : { status: before.status }
      this.put(at, ofStatus ? { ...before, status: body.status } : { ...status, ...body })
      this.#answer(response, this.#objects.get(at))
    }
  }

  #merge(target: string, patch: JsonObject, response: ServerResponse): void {
    const path = target.replace(/\/status$/, '')
    const before = this.#objects.get(path)
    const { resourceVersion } = Object(patch.metadata)
    if (
      before !== undefined &&
      (resourceVersion ?? before.metadata.resourceVersion) !== before.metadata.resourceVersion
    ) {
      refuse(response, 409, 'Conflict')
      return
    }
    const { status = {} } = patch
    if (before !== undefined) this.put(path, merged(before, path === target ? patch : { status }))
    this.#answer(response, this.#objects.get(path))
  }

  #broadcast(type: string, path: string, object: StoredObject): void {
    for (const { covers, response } of this.#watches) if (covers(path)) response.write(lineOf(type, object))
  }
}

/** RFC 7386. */
function merged(before: JsonObject, patch: JsonObject): JsonObject {
  const whole: Record<string, unknown> = { ...before }
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete whole[name]
    else whole[name] = isObject(value) ? merged(isObject(whole[name]) ? whole[name] : {}, value) : value
  }
  return whole
}

function lineOf(type: string, object: StoredObject): string {
  return `${JSON.stringify({ type, object })}\n`
}

function statusOf(code: number, reason: string): JsonObject {
  return { kind: 'Status', status: 'Failure', code, reason, message: `${reason}, as the test wants it` }
}

function refuse(response: ServerResponse, code: number, reason: string): void {
  send(response, code, statusOf(code, reason))
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
