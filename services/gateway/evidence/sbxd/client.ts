import { lstat, readFile } from 'node:fs/promises'
import { env, getuid } from 'node:process'
import { isObject, reasonOf, withoutTrailingSlash } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { SbxdConfig } from './config.ts'

/** Time limit of one request, in milliseconds. */
const TIMEOUT_MS = 10_000
/** Maximum bytes of a response: more than the longest line. */
const MAX_BYTES = 4 * 1024 * 1024
const SOCKET_NAME = 'plat-sbxd.sock'

/** Thrown when the daemon cannot be reached or does not respond as documented (docs/sandbox-daemons.md). */
export class DaemonError extends Error {
  /** Whether the same request may succeed later. */
  readonly isTemporary: boolean

  constructor(message: string, isTemporary: boolean) {
    super(message)
    this.isTemporary = isTemporary
  }
}

/** Client of the protocol of sandbox daemons. */
export class DaemonClient {
  readonly #config: SbxdConfig
  readonly #dialer: Pick<Dialer, 'fetchBytes'>
  /** The URL or the path of the socket. */
  readonly place: string
  readonly #socket: string | null

  constructor(config: SbxdConfig, dialer: Pick<Dialer, 'fetchBytes'>) {
    this.#config = config
    this.#dialer = dialer
    this.#socket = config.url === '' ? config.socket || defaultSocket() : null
    this.place = this.#socket ?? config.url
  }

  /** Returns the body, which is empty for 204. Throws DaemonError. */
  async request(method: 'GET' | 'POST', path: string, body?: object): Promise<Buffer> {
    const { status, bytes } = await this.#send(method, path, body)
    if (status >= 200 && status < 300) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const isTemporary = status >= 500 || status === 429 || status === 408 || status === 401
    throw new DaemonError(`${this.place} responded ${status} to ${method} ${path.split('?', 1)[0]}`, isTemporary)
  }

  async #send(method: 'GET' | 'POST', path: string, body?: object) {
    const socket = this.#socket
    try {
      if (socket !== null) await checkOwner(socket)
      const headers = await this.#headers(body)
      const base = socket === null ? withoutTrailingSlash(this.#config.url) : 'http://localhost'
      return await this.#dialer.fetchBytes(`${base}${path}`, 'sandbox', {
        method,
        headers,
        maxBytes: MAX_BYTES,
        timeoutMs: TIMEOUT_MS,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(socket !== null && { socketPath: socket }),
      })
    } catch (error) {
      if (error instanceof DaemonError) throw error
      throw new DaemonError(`${this.place}: ${reasonOf(error)}`, true)
    }
  }

  async #headers(body?: object): Promise<Record<string, string>> {
    const { tokenFile } = this.#config
    const token = tokenFile === '' ? '' : (await readFile(tokenFile, 'utf8')).trim()
    return {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(token !== '' && { authorization: `Bearer ${token}` }),
    }
  }
}

/** Reads an object of JSON. Throws DaemonError. */
export function objectOf(bytes: Buffer): Readonly<Record<string, unknown>> {
  let value: unknown = null
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    // Refused below.
  }
  if (!isObject(value)) throw new DaemonError('the daemon did not respond with a JSON object', false)
  return value
}

/** The socket of this user's daemon. */
function defaultSocket(): string {
  return `${env.XDG_RUNTIME_DIR || `/run/user/${getuid?.() ?? 0}`}/${SOCKET_NAME}`
}

/** Another user of this machine could otherwise offer a daemon of theirs. */
async function checkOwner(socket: string): Promise<void> {
  const { uid } = await lstat(socket)
  if (uid !== 0 && uid !== getuid?.()) throw new Error('the socket belongs to another user')
}
