import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { Dice } from './dice.ts'
import { type Exchanged, exchange } from './exchange.ts'
import { drawMalformed, type Malformed } from './malformed.ts'
import { wellFormed } from './request.ts'
import { type StrictServer, startStrictServer } from './server.ts'

export interface HammerOptions {
  /** Malformed requests to send. */
  readonly count: number
  readonly seed: number
  /** Called after each percent of the run. */
  tell?(done: number): void
}

/** Result of a run. */
export interface Hammered {
  readonly sent: number
  /** Answers by status; 0 counts the connections that closed without one. */
  readonly statuses: ReadonlyMap<number, number>
  /** Well-formed calls in between, all of which must succeed. */
  readonly honest: number
  /** Resident memory of the gateway, in bytes, at even steps through the run. Empty if the system does not report it. */
  readonly memory: readonly number[]
  /** The same after each tenth of the run, once the gateway has given back all that it does not need. */
  readonly retained: readonly number[]
  /** Violations, one line each, with the request. At most `MAX_FAULTS`. */
  readonly faults: readonly string[]
}

/** Connections at a time. */
const LANES = 64
/** Number of steps at which progress is reported and memory is read. */
const STEPS = 100
/** Steps between queries of the gateway's memory. */
const KEPT_EVERY = 10
/** Interval between checks for a response, in milliseconds. */
const KEPT_LOOK_MS = 20
/** After so many malformed requests a well-formed one follows. */
const HONEST_EVERY = 100
const MAX_FAULTS = 20
/** In a hundred requests, so many come in pieces, and so many are reset. */
const PIECES_PERCENT = 20
const RESET_PERCENT = 2
const MOST_PIECES = 5
/** Longer than any run takes, in seconds. */
const TOKEN_SECONDS = 24 * 3600
const PAGE_BYTES = 4096

/** Sends malformed requests to a gateway in a separate process, with well-formed ones in between. */
export async function hammer(options: HammerOptions): Promise<Hammered> {
  const dir = await mkdtemp(path.join(tmpdir(), 'plat-'))
  const keptFile = path.join(dir, 'retained')
  const server = await startStrictServer()
  const gateway = await startGatewayProcess({
    servers: { notes: server.url },
    config: { auditFailurePolicy: 'open' },
    env: { KEPT_FILE: keptFile, NODE_OPTIONS: `--expose-gc --import ${new URL('./kept.ts', import.meta.url)}` },
  })
  try {
    return await new Hammer(options, gateway, { server, keptFile }).run()
  } finally {
    await gateway.close()
    await server.close()
    await rm(dir, { recursive: true })
  }
}

class Hammer {
  readonly #options: HammerOptions
  readonly #gateway: GatewayProcess
  readonly #server: StrictServer
  readonly #keptFile: string
  readonly #port: number
  readonly #token: string
  readonly #dice: Dice
  readonly #statuses = new Map<number, number>()
  readonly #memory: number[] = []
  readonly #retained: number[] = []
  readonly #faults: string[] = []
  #sent = 0
  #done = 0
  #honest = 0

  constructor(
    options: HammerOptions,
    gateway: GatewayProcess,
    { server, keptFile }: { readonly server: StrictServer; readonly keptFile: string },
  ) {
    this.#options = options
    this.#gateway = gateway
    this.#server = server
    this.#keptFile = keptFile
    this.#port = Number(new URL(gateway.url).port)
    this.#dice = new Dice(options.seed)
    const exp = Math.floor(Date.now() / 1000) + TOKEN_SECONDS
    this.#token = gateway.issuer.token({ scope: 'tools:notes', exp })
  }

  async run(): Promise<Hammered> {
    await Promise.all(Array.from({ length: LANES }, () => this.#lane()))
    await this.#callHonestly()
    for (const leak of this.#server.leaks) this.#fault(`reached the server: ${leak}`)
    for (const line of this.#gateway.complaints()) this.#fault(`the gateway said: ${line}`)
    return {
      sent: this.#done,
      statuses: this.#statuses,
      honest: this.#honest,
      memory: this.#memory,
      retained: this.#retained,
      faults: this.#faults.slice(0, MAX_FAULTS),
    }
  }

  /** One request after the other, each on a new connection. The random draws do not depend on the lane. */
  async #lane(): Promise<void> {
    const { count } = this.#options
    while (this.#sent < count && this.#faults.length < MAX_FAULTS) {
      const number = ++this.#sent
      await this.#sendOne()
      if (number % HONEST_EVERY === 0) await this.#callHonestly()
      await this.#step()
    }
  }

  async #sendOne(): Promise<void> {
    const dice = this.#dice
    const request = drawMalformed(dice, this.#token)
    const pieces = dice.chance(PIECES_PERCENT) ? dice.below(MOST_PIECES) + 1 : 1
    const reset = dice.chance(RESET_PERCENT)
    const patient = request.answers === 1 && !request.statuses.includes(0)
    const exchanged = await exchange({ port: this.#port, bytes: request.bytes, pieces, patient, reset })
    const given = exchanged.answers.map(({ status }) => status).filter((status) => status !== 100)
    for (const status of given.length === 0 ? [0] : given) {
      this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1)
    }
    const wrong = reset ? null : judge(request, exchanged)
    if (wrong !== null) this.#fault(`${request.kind}: ${wrong}: ${masked(request.bytes, this.#token)}`)
  }

  /** A well-formed call: the gateway must be as alive as ever. */
  async #callHonestly(): Promise<void> {
    const before = this.#server.received
    const bytes = wellFormed(this.#token, 'honest')
    const { answers } = await exchange({ port: this.#port, bytes, pieces: 1, patient: true, reset: false })
    this.#honest++
    const statuses = answers.map(({ status }) => status)
    if (statuses.join() !== '200' || this.#server.received === before)
      this.#fault(`a well-formed call was answered ${statuses.join() || 'nothing'} after ${this.#done} requests`)
  }

  async #step(): Promise<void> {
    this.#done++
    const size = Math.max(1, Math.floor(this.#options.count / STEPS))
    if (this.#done % size !== 0) return
    if ((this.#done / size) % KEPT_EVERY === 0) this.#retained.push(await this.#askKept())
    const bytes = residentBytes(this.#gateway.pid)
    if (bytes !== null) this.#memory.push(bytes)
    this.#options.tell?.(this.#done)
  }

  /** One lane queries while the others continue. */
  async #askKept(): Promise<number> {
    await rm(this.#keptFile, { force: true })
    process.kill(this.#gateway.pid, 'SIGUSR2')
    for (;;) {
      const text = await readFile(this.#keptFile, 'utf8').catch(() => null)
      if (text !== null) return Number(text)
      // Throws once it is gone.
      process.kill(this.#gateway.pid, 0)
      await setTimeout(KEPT_LOOK_MS)
    }
  }

  #fault(text: string): void {
    this.#faults.push(text)
  }
}

/** The problem of the responses, or null. */
function judge({ statuses, answers: most }: Malformed, { answers, lost }: Exchanged): string | null {
  if (lost) return 'the connection stays open'
  const final = answers.filter(({ status }) => status !== 100)
  const stray = final.find(({ status }) => !statuses.includes(status))
  if (stray !== undefined) return `answered ${stray.status}, not ${statuses.join(' or ')}`
  if (final.length > most) return `answered ${final.length} times`
  if (final.length === 0 && most === 1 && !statuses.includes(0)) return 'not answered'
  const nameless = final.find(({ head }) => !head.includes('x-plat-request-id: '))
  return nameless === undefined ? null : `answered ${nameless.status} without a request id`
}

/** A printable request that can be sent again; the token is a placeholder of the same length. */
function masked(bytes: Buffer, token: string): string {
  return JSON.stringify(bytes.toString('latin1').replaceAll(token, '<token>')).slice(0, 2000)
}

/** Resident memory of a process; null where there is no /proc. */
function residentBytes(pid: number): number | null {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
  } catch {
    return null
  }
}
