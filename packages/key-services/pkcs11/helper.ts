import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Clock, JsonObject } from '@plat/core'
import { KeyServiceError } from '@plat/keys'
import type { Log } from '@plat/process'
import { TransientKeyError } from '../calls.ts'
import { HELLO, type HelperRequest, MAX_LINE_BYTES, readHelperResponse } from './protocol.ts'

/** The helper of plat: `pkcs11-tool` of OpenSC. */
const HELPER_PROGRAM = new URL('./adapter.ts', import.meta.url)
/** A helper that does not respond for this long is ended, in milliseconds. */
const RESPONSE_MS = 8_000

type Child = ChildProcessByStdio<Writable, Readable, null>
type Unnumbered = Omit<HelperRequest, 'id'>

interface Waiting {
  resolve(result: JsonObject): void
  reject(error: Error): void
}

export interface HelperOptions {
  /** `PLAT_PKCS11_HELPER` names another program; the helper receives `helperEnvironment` of this. */
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** The process that has the PKCS#11 module: started at the first request, and again after it has ended. A module that crashes ends only it. */
export class Helper {
  readonly #options: HelperOptions
  readonly #waiting = new Map<number, Waiting>()
  #child: Child | null = null
  #hasGreeted = false
  #lastId = 0
  #isClosed = false

  constructor(options: HelperOptions) {
    this.#options = options
  }

  /** Rejects with `KeyServiceError` what the helper refuses, and with `TransientKeyError` what may pass. */
  request(request: Unnumbered): Promise<JsonObject> {
    if (this.#isClosed) return Promise.reject(new Error('the key services are closed'))
    const child = this.#child ?? this.#start()
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const cancel = this.#options.clock.after(RESPONSE_MS, () => this.#end(child, 'does not respond'))
      const settled = () => {
        cancel()
        this.#waiting.delete(id)
      }
      this.#waiting.set(id, {
        resolve(result) {
          settled()
          resolve(result)
        },
        reject(error) {
          settled()
          reject(error)
        },
      })
      child.stdin.write(`${JSON.stringify({ id, ...request })}\n`)
    })
  }

  close(): void {
    this.#isClosed = true
    if (this.#child !== null) this.#end(this.#child, 'is not needed any more')
  }

  #start(): Child {
    const { env, log } = this.#options
    const named = env.PLAT_PKCS11_HELPER
    const [program, args] = named ? [named, []] : [process.execPath, [fileURLToPath(HELPER_PROGRAM)]]
    const child = spawn(program, args, { env: helperEnvironment(env), stdio: ['pipe', 'pipe', 'ignore'] })
    this.#child = child
    this.#hasGreeted = false
    child.on('error', (error) => this.#end(child, `cannot be started: ${error.message}`))
    child.on('exit', () => this.#end(child, 'has ended'))
    child.stdin.on('error', () => this.#end(child, 'reads nothing'))
    this.#read(child)
    log.info({ program }, 'the PKCS#11 helper was started')
    return child
  }

  #read(child: Child): void {
    let bytes = 0
    child.stdout.on('data', (chunk: Buffer) => {
      const end = chunk.lastIndexOf(10)
      bytes = end === -1 ? bytes + chunk.length : chunk.length - end - 1
      if (bytes > MAX_LINE_BYTES) this.#end(child, 'sent a line that is too long')
    })
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (this.#child === child) this.#receive(child, line)
    })
  }

  #receive(child: Child, line: string): void {
    if (!this.#hasGreeted) {
      this.#hasGreeted = line === HELLO
      if (!this.#hasGreeted) this.#end(child, `does not begin with ${HELLO}`)
      return
    }
    const response = readHelperResponse(line)
    const waiting = response === null ? undefined : this.#waiting.get(response.id)
    if (response === null || waiting === undefined) this.#end(child, 'sent a response that belongs to no request')
    else if ('result' in response) waiting.resolve(response.result)
    else waiting.reject(failureOf(response.error))
  }

  #end(child: Child, why: string): void {
    if (this.#child !== child) return
    this.#child = null
    child.kill('SIGKILL')
    if (this.#waiting.size > 0) this.#options.log.warn({ why }, 'the PKCS#11 helper was ended')
    for (const waiting of [...this.#waiting.values()])
      waiting.reject(new TransientKeyError(`the PKCS#11 helper ${why}`))
  }
}

function failureOf({ kind, message }: { readonly kind: 'refused' | 'unavailable'; readonly message: string }): Error {
  return kind === 'refused' ? new KeyServiceError('refused', message) : new TransientKeyError(message)
}

/** Variables for the helper and its module: none of plat but its own, and nothing that is named like a secret. */
export function helperEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isPassed = (name: string) =>
    name.startsWith('PLAT_')
      ? name.startsWith('PLAT_PKCS11_')
      : !/TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY(?:_|$)|ACCESS_KEY/i.test(name)
  return Object.fromEntries(Object.entries(env).filter(([name]) => isPassed(name)))
}
