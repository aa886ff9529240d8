import { createHash } from 'node:crypto'
import { type Clock, readUtf8 } from '@plat/core'
import { type Dialer, dialFault, isDialError } from '@plat/http'
import type { Log } from '@plat/process'
import type { Manifest, MCPServerSpec } from '@plat/resources'
import { FairLane } from '../controllers/fair-lane.ts'
import { type ApiResult, type ApiResults, keyOf, type ReferencedTexts, sorted } from '../render/declared.ts'
import { serverProblems } from '../validate/server.ts'
import { compileAside } from './compile-aside.ts'
import { documentOf, sourceOf } from './source.ts'

/** Largest document, in bytes; one in YAML has a lower limit. */
export const DOCUMENT_MAX_BYTES = 8 * 1024 * 1024
/** Time limit for reading a URL, in milliseconds. */
const FETCH_MS = 10_000
/** How often a URL is read again, and how soon after a failure, in milliseconds. */
const READ_AGAIN_MS = 600_000
const RETRY_MS = 30_000
/** Documents that are read at the same time. */
const AT_ONCE = 4
/** Servers with `openapi` of one namespace; documents are held by the operator for all namespaces. */
const NAMESPACE_MAX = 32

export interface ApisOptions {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly log: Log
  /** Called when a result has changed. */
  readonly onChange: () => void
}

/** The document of a server as it is declared now. */
interface Wanted {
  readonly key: string
  readonly field: string
  readonly openapi: NonNullable<MCPServerSpec['openapi']>
  readonly hidden: readonly string[]
  /** Null if the document is read from a URL. */
  readonly text: string | null
  /** PEM bundle trusted for the URL. */
  readonly caPEM: string | undefined
}

interface Entry {
  wanted: Wanted
  /** Everything but the text that the result depends on. */
  readonly settings: string
  /** Digest of the text that was compiled last; null for a URL. */
  digest: string | null
  result: ApiResult | null
  cancelTimer: () => void
}

const READING = 'is being read'

/**
 * Reads the OpenAPI documents of MCPServers beside the rendering, so that no document delays the policies of others. Namespaces take turns.
 * While a document that was usable cannot be read, its tools stay.
 */
export class Apis {
  readonly #options: ApisOptions
  readonly #entries = new Map<string, Entry>()
  readonly #waiting = new FairLane()
  #running = 0
  #whenIdle: (() => void)[] = []
  #isClosed = false
  /** Results of the last call of `current`. */
  last: ApiResults = new Map()

  constructor(options: ApisOptions) {
    this.#options = options
  }

  /**
   * Returns what is known now of all servers with `openapi`, and reads what has changed. `texts` are files and ConfigMaps by
   * `documentOf`, `bundles` CA bundles by the same names.
   */
  current(servers: readonly Manifest<'MCPServer'>[], texts: ReferencedTexts): ApiResults {
    const results = new Map<string, ApiResult>()
    const counts = new Map<string, number>()
    for (const server of sorted(servers)) {
      const { openapi } = server.spec
      if (openapi === undefined || serverProblems(server).length > 0) continue
      const { namespace } = server.metadata
      const count = (counts.get(namespace) ?? 0) + 1
      counts.set(namespace, count)
      results.set(keyOf(server), count > NAMESPACE_MAX ? tooMany : this.#resultOf(server, openapi, texts))
    }
    for (const key of this.#entries.keys()) if (!results.has(key)) this.#drop(key)
    this.last = results
    return results
  }

  /** Resolves when nothing is being read, or after `ms`. */
  async settled(ms: number): Promise<void> {
    if (this.#running === 0 && this.#waiting.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#whenIdle.push(resolve)
    const cancel = this.#options.clock.after(ms, resolve)
    await promise
    cancel()
  }

  close(): void {
    this.#isClosed = true
    for (const key of [...this.#entries.keys()]) this.#drop(key)
  }

  #resultOf(
    server: Manifest<'MCPServer'>,
    openapi: NonNullable<MCPServerSpec['openapi']>,
    { texts, withheld }: ReferencedTexts,
  ): ApiResult {
    const key = keyOf(server)
    const { field, name } = sourceOf(server)
    const text = openapi.inline ?? (name === null ? null : texts.get(name))
    if (text === undefined) {
      this.#drop(key)
      const why = (name === null ? undefined : withheld.get(name)) ?? 'cannot be read'
      return { field, why: openapi.file === undefined ? `ConfigMap ${name} ${why}` : `${openapi.file} ${why}` }
    }
    const bundle = documentOf(server.metadata.namespace, server.spec.caBundleRef)
    const caPEM = bundle === null ? undefined : texts.get(bundle)
    const hidden = [server.spec.auth?.headerName ?? []].flat().map((header) => header.toLowerCase())
    return this.#entry({ key, field, openapi, hidden, text, caPEM }).result ?? { field, why: READING }
  }

  #entry(wanted: Wanted): Entry {
    const { key, openapi, hidden, text, caPEM } = wanted
    const { inline: _, ...rules } = openapi
    const settings = JSON.stringify([rules, hidden, caPEM])
    const digest = text === null ? null : createHash('sha256').update(text).digest('base64url')
    const known = this.#entries.get(key)
    if (known !== undefined && known.settings === settings) {
      if (known.digest === digest) return known
      known.wanted = wanted
      known.digest = digest
      this.#enqueue(key)
      return known
    }
    this.#drop(key)
    const fresh: Entry = { wanted, settings, digest, result: null, cancelTimer: () => {} }
    this.#entries.set(key, fresh)
    this.#enqueue(key)
    return fresh
  }

  #drop(key: string): void {
    this.#entries.get(key)?.cancelTimer()
    this.#entries.delete(key)
    this.#waiting.delete(key)
  }

  #enqueue(key: string): void {
    if (this.#isClosed) return
    if (!this.#waiting.has(key)) this.#waiting.set(key, 0)
    this.#next()
  }

  #next(): void {
    while (this.#running < AT_ONCE) {
      const [key] = this.#waiting.shift() ?? []
      if (key === undefined) break
      const entry = this.#entries.get(key)
      if (entry === undefined) continue
      this.#running++
      void this.#read(entry).finally(() => {
        this.#running--
        this.#next()
        if (this.#running === 0 && this.#waiting.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
      })
    }
  }

  async #read(entry: Entry): Promise<void> {
    const { clock, log, onChange } = this.#options
    const { wanted } = entry
    const { key, field, openapi, hidden } = wanted
    const text = wanted.text === null ? await this.#fetched(wanted) : { text: wanted.text }
    const compiled = 'why' in text ? text.why : await compileAside({ ...text, allow: openapi.allow, hidden })
    if (this.#entries.get(key) !== entry || this.#isClosed) return
    if (wanted.text === null) {
      entry.cancelTimer()
      const again = typeof compiled === 'string' ? RETRY_MS : READ_AGAIN_MS
      entry.cancelTimer = clock.after(again, () => this.#enqueue(key))
    }
    // A newer text waits for its turn.
    if (entry.wanted !== wanted) return
    const hadTools = entry.result !== null && 'tools' in entry.result
    if (typeof compiled === 'string' && hadTools && wanted.text === null) {
      log.warn({ server: key, problem: compiled }, 'the OpenAPI document cannot be read again; its tools stay')
      return
    }
    const result = typeof compiled === 'string' ? { field, why: compiled } : compiled
    if (JSON.stringify(result) === JSON.stringify(entry.result)) return
    entry.result = result
    if ('skipped' in result && result.skipped.length > 0)
      log.warn(
        { server: key, operations: result.skipped.slice(0, 10) },
        'operations of an OpenAPI document are skipped: they cannot be tools',
      )
    onChange()
  }

  async #fetched({ openapi, caPEM }: Wanted): Promise<{ readonly text: string } | { readonly why: string }> {
    try {
      const { status, bytes } = await this.#options.dialer.fetchBytes(openapi.documentURL ?? '', 'mcp', {
        maxBytes: DOCUMENT_MAX_BYTES,
        timeoutMs: FETCH_MS,
        headers: { accept: 'application/json, application/yaml;q=0.9, */*;q=0.1', 'user-agent': 'plat' },
        wants: (head) => head.status === 200,
        ...(caPEM !== undefined && { caPEM }),
      })
      if (status !== 200) return { why: `cannot be read: it answered ${status}; redirects are not followed` }
      const text = readUtf8(bytes)
      return text === null ? { why: 'is not UTF-8' } : { text }
    } catch (error) {
      if (!isDialError(error)) throw error
      return { why: `cannot be read (${dialFault(error)})` }
    }
  }
}

const tooMany: ApiResult = { field: '', why: `the namespace has more than ${NAMESPACE_MAX} servers with openapi` }
